"""How does what a run has reached become files that can be trusted later?"""
