"""What is known of many intervals at once?"""
