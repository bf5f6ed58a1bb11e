"""How is what a run has reached written to files that can be trusted later?"""
