"""What does a task learn from Airflow of the run that it belongs to?"""
