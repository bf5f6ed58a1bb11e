"""What does a pipeline's author declare, and how is it read?"""
