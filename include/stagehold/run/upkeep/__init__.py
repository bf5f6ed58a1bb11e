"""Is what is recorded still there, how is a lost ledger rebuilt, and what is kept of a run that the ledger forgets?"""
