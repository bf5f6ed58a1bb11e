"""How does a pipeline become a DAG, and what do the page and its API show?"""
