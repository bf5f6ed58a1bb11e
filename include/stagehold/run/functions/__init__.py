"""What is a stage's function given, and what is made of what it returns?"""
