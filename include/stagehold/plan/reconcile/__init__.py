"""What do ledger and lake say differently, and what of it can be repaired?"""
