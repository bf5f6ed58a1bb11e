"""How do verdicts on record become pages of Great Expectations that a browser shows?"""
