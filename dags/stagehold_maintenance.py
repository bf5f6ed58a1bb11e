"""Cleans up and looks for damage each day. Off until you switch it on."""

from __future__ import annotations

from stagehold.airflow.dag.maintenance import maintenance_dag

dag = maintenance_dag()
