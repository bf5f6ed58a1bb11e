"""How do a project's pipelines become DAGs, and what do Airflow's own pages show of them?"""
