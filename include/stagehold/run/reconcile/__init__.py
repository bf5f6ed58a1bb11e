"""How is a lost ledger rebuilt from the lake?"""
