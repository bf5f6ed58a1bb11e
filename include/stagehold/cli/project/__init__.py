"""How does a command make a project?"""
