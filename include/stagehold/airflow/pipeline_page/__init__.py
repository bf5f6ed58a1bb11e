"""What does the tab of a pipeline show of its intervals, savepoints and backfills, and what is done from there?"""
