"""What does everybody who works on a run have at hand?"""
