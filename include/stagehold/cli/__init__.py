"""What does a command print?"""
