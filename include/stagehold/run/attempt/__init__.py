"""How does one attempt of a region go from lease to result?"""
