"""What does an interval take of a source, and in which splits?"""
