"""The same operators by hand, for a DAG file you already own: regions are tasks like any others."""

from __future__ import annotations

from airflow.sdk import DAG, task

from stagehold.airflow.dag.compile import run_params
from stagehold.airflow.dag.region_operator import RegionOperator
from stagehold.settings import load_settings
from stagehold.spec.loading.loader import find_pipeline

pipeline = find_pipeline("shipping_priority", load_settings())

with DAG("handwritten_example", schedule=None, tags=["stagehold"], params=run_params(pipeline)):

    @task
    def announce() -> None:
        print("marts.top_orders is published")

    customer, orders, lineitem, orders_by_customer, shipping_priority, top_orders = (
        RegionOperator(task_id=stage.name, pipeline=pipeline, region=stage.name) for stage in pipeline.stages
    )
    [customer, orders] >> orders_by_customer
    [orders_by_customer, lineitem] >> shipping_priority >> top_orders >> announce()
