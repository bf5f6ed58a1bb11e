"""How is the ledger kept in a database?"""
