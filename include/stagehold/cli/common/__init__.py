"""What do all commands ask alike, and how do they print it?"""
