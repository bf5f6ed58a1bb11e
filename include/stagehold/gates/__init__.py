"""Is a partition's data good enough?"""
