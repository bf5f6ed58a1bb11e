"""What did gates say of a run, and how does its page overrule them?"""
