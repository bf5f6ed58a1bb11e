"""How is a backfill planned and started through the web API, and what is a run of one told to do?"""
