"""How does what may be shown no more leave its tables, when a waiver has ended?"""
