"""Which partitions hang together: what starts, fails, restarts and is released with what?"""
