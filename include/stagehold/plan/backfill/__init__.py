"""Which cells of intervals and stages does a backfill run, why, and is that still what was shown?"""
