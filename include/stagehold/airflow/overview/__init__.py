"""What does the page in Airflow's menu show of all pipelines together?"""
