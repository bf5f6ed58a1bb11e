"""How are intervals listed, compared and deleted by a command?"""
