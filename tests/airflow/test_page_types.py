"""The types that the pages are checked against are those of what the web API answers."""

from __future__ import annotations

import pytest
from tools.page_types import TARGET, typescript

pytestmark = pytest.mark.airflow


def test_the_types_are_those_of_the_api(synced_airflow):
    from stagehold.airflow.api import create_api

    assert TARGET.read_text() == typescript(create_api().openapi()), "make docs"


def test_what_may_be_left_out_of_a_request_is_always_in_an_answer():
    optional = {"type": "object", "properties": {"note": {"type": "string"}}, "required": []}
    ranges = {"type": "array", "items": {"anyOf": [{"$ref": "#/components/schemas/Word"}, {"type": "null"}]}}
    schemas = {
        "Asked": optional,
        "Given": {**optional, "properties": {**optional["properties"], "words": ranges}},
        "Word": {"type": "string", "enum": ["one", "two"]},
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Asked"}}}}
    document = {"components": {"schemas": schemas}, "paths": {"/x": {"post": {"requestBody": body}}}}
    assert typescript(document).split("declare namespace Api {\n")[1] == (
        "  interface Asked {\n    note?: string;\n  }\n\n"
        "  interface Given {\n    note: string;\n    words: (Word | null)[];\n  }\n\n"
        '  type Word = "one" | "two";\n}\n'
    )
