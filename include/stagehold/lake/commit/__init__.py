"""How do staged files become part of a table, and what does its log say of that?"""
