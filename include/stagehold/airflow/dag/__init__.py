"""How does a pipeline become a DAG with a task for each region, and what do Airflow's own pages show of it?"""
