"""What does a stage's function do while it is called, beside building its frame, and what do its names mean then?"""
