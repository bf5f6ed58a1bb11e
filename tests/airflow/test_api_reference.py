from __future__ import annotations

import pytest
from tools.reference import api_page, openapi_document

from stagehold.settings import PROJECT

pytestmark = pytest.mark.airflow


def test_the_page_of_the_web_api_is_current() -> None:
    written = (PROJECT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    assert written == api_page(openapi_document()), "run `make docs`"
