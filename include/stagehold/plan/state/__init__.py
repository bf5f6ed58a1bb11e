"""What does a partition begin with of what its stage kept before?"""
