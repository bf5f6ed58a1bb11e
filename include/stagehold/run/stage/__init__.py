"""How are the partitions of one stage computed, wave by wave?"""
