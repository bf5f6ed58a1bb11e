"""What does the tab of a pipeline show of its many intervals?"""
