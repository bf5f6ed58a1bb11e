"""Into which regions, shares and partitions is a pipeline cut?"""
