"""With what does a run of Airflow begin, and how do forms and page say it?"""
