"""What is wrong with what the author declared?"""
