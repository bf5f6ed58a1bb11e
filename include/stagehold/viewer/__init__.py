"""What is in a checkpoint, asked of the lake alone?"""
