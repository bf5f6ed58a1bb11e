"""How does what a stage keeps from interval to interval come to its function, and from it into the lake?"""
