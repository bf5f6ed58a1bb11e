"""What does the lake tell of the ledger, so that a lost one comes back?"""
