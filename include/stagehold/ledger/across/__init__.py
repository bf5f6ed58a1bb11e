"""What do many runs, intervals and pipelines come to together?"""
