"""Which files are there, and what is in them?"""
