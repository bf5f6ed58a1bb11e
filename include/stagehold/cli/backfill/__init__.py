"""How is a backfill planned, started and followed by a command?"""
