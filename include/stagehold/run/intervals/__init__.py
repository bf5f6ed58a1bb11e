"""What is on record of each interval, how do two of them differ, and how is one kept or taken out?"""
