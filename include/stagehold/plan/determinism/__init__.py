"""Does the same input give the same data again?"""
