"""How does what a run has reached become a checkpoint, or a savepoint to be kept, moved and thrown away by name?"""
