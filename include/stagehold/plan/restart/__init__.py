"""What kind of failure was it, and does the run go on after it?"""
