"""Who is told of a run, by which way and in which words?"""
