"""The address of a run's Stagehold tab, which messages and logs end with."""

from __future__ import annotations

from urllib.parse import quote

from airflow.sdk.configuration import conf


def run_tab(dag_id: str, run_id: str) -> str:
    base = conf.get("api", "base_url", fallback="").rstrip("/")
    return f"{base}/dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe='')}/plugin/stagehold"
