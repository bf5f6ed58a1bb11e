"""What does Airflow have on record of runs, and how are they cleared and linked to?"""
