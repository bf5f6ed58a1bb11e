"""May the partitions of a keyed stage share one call of its function? Decided from the plan that Spark made of it."""
