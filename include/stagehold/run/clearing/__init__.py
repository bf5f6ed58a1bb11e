"""What of the lake does nobody need any more, and how is it deleted while others work?"""
