"""How do we reach Spark?"""
