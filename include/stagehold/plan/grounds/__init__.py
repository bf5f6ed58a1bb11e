"""What does a decision about a partition rest on?"""
