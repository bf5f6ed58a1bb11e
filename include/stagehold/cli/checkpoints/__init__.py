"""What do commands print of checkpoints: of a run's history, and of what is in one?"""
