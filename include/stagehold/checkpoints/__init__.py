"""What has a run reached, and from where can another one go on?"""
