"""Of what are the forms of a pipeline file made?"""
