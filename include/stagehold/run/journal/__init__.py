"""How is the life of runs and attempts put on record?"""
