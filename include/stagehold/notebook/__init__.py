"""How does Python, in a notebook or at its prompt, look at a project and run it?"""
