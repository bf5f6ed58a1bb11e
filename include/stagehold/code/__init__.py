"""What is the code that a stage's function reaches, and what does it do when it is loaded?"""
