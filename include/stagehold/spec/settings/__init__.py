"""What are the forms of a pipeline file made of?"""
