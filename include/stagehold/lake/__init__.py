"""How do files become partitions that can be read?"""
