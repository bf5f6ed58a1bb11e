"""How do staged files become part of a table, and what does the log of the table say about that?"""
