"""How does a pipeline run, from what is asked for to what is recorded?"""
