"""What do commands about savepoints print?"""
