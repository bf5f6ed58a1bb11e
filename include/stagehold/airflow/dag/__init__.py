"""How does a pipeline become a DAG with a task for each region?"""
