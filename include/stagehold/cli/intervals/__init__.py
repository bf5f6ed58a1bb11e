"""How are intervals listed, compared, pinned and deleted by a command?"""
