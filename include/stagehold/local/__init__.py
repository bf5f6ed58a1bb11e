"""How does everything run on one machine?"""
