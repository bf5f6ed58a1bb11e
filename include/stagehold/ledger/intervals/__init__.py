"""What is known of many intervals of a pipeline at once, in a few queries whose answers are small."""
