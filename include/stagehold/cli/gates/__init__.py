"""What did gates say, and may what they refuse be read all the same?"""
