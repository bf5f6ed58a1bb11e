"""Which values does everybody share?"""
