"""What runs, and why? Pure: what has to be known is handed in."""
