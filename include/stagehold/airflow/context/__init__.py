"""What does a task learn from Airflow of the run that it belongs to, and what was asked of that run?"""
