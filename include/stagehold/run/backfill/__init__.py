"""How is a backfill planned, and how do its runs follow each other without Airflow?"""
