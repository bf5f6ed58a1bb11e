"""How does a ledger get the schema that this code knows? Alembic's folder: versions are numbered, and there is no way
down.
"""
