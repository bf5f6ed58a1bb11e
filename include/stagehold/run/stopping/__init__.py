"""How is a run ended before its end, behind a wave or at once?"""
