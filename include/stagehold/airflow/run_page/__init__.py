"""What does the page of a run show of partitions and gates, and what do its Resume and its waivers do?"""
