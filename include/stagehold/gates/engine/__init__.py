"""What does Great Expectations say of each of many partitions?

Its own code is asked, and the queries that it asks run once for all of them.
"""
