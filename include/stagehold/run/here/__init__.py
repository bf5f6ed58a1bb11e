"""What goes on in this process from start to end?"""
