"""What have people asked for, and what do they vouch for?"""
