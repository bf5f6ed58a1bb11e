"""What does the page of a run show, and what does its Resume clear?"""
