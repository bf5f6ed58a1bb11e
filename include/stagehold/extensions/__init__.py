"""Which code of others is called when something happens, and what does it get?"""
