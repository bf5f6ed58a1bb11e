"""How does what a run has reached become the user's own, to be kept, moved and thrown away by name?"""
