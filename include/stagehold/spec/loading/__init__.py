"""How does a pipeline file become a pipeline, with the values that it was to be given?"""
