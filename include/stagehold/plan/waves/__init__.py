"""How many partitions go together, and which of them are slow or large?"""
