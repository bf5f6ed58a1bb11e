"""What is in a new project?"""
