"""What does an attempt's session with the server do, and does it still move?"""
