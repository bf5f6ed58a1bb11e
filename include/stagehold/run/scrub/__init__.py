"""Is what is recorded still there as it was, and how is that mended which is not?"""
