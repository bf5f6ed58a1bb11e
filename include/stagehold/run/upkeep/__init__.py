"""How is a lost ledger rebuilt from the lake, and what is known of a run after the ledger has forgotten it?"""
