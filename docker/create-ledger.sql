-- The ledger has a database of its own beside Airflow's: either can be lost, moved or restored without the other.
CREATE DATABASE ledger;
