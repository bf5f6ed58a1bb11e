"""What would run if something were different?"""
