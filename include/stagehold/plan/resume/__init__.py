"""What runs, what is reused, and why?"""
