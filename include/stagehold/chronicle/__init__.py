"""How does the ledger outlive its database, and what do it and the lake say differently?"""
