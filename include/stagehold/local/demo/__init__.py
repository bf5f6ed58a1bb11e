"""What does the demo show, and who judges its answer?"""
