"""How does the web API answer, and how does it say no?"""
