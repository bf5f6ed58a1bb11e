"""What is there to read outside the lake, and how is it read?"""
