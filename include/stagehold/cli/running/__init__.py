"""How is a run planned, begun, gone on with, listed and stopped by a command?"""
