"""What did gates say?"""
