"""What is known of a run, now and after the ledger has forgotten it?"""
