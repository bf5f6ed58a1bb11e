"""How does an attempt come to own the tables of its region?"""
