"""How does what a run has reached become a checkpoint, while the run goes on and when it ends?"""
