"""How does pytest call a stage with rows of a test?"""
