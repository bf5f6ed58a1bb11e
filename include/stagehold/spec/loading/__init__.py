"""How does a pipeline file become a pipeline, and what is wrong with it?"""
