"""What `--param` takes."""

from __future__ import annotations

from datetime import date

import pytest

from stagehold.cli.common.request import parse_params
from stagehold.errors import InvalidArgument, InvalidParameter

DEFAULTS = {
    "limit": 5,
    "share": 0.5,
    "name": "x",
    "on": True,
    "days": [1],
    "map": {"a": 1},
    "any": None,
    "since": date(2026, 1, 1),
}


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("limit=7", 7),
        ("share=7", 7),
        ("name=y=z", "y=z"),
        ("name=007", "007"),
        ("name=7", "7"),
        ('name="7"', "7"),
        ("name=true", "true"),
        ("on=false", False),
        ("days=[1, 2]", [1, 2]),
        ('map={"b": 2}', {"b": 2}),
        ("any=[]", []),
        ("any=text", "text"),
        ("since=2026-02-03", "2026-02-03"),
    ],
)
def test_a_value_has_the_type_of_its_default(given, value):
    name = given.partition("=")[0]
    assert parse_params([given], DEFAULTS) == {**DEFAULTS, name: value}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("limit=many", "Parameter limit is 'many'; allowed: a whole number, as the default 5 is"),
        ("limit=1.5", "a whole number"),
        ("limit=true", "a whole number"),
        ("limit=null", "a whole number"),
        ("share=half", "a number, as the default 0.5 is"),
        ("share=true", "a number"),
        ("on=1", "true or false"),
        ("days=1", "a list, as JSON"),
        ("map=[]", "an object, as JSON"),
        ("lmit=3", "a parameter of the pipeline: limit, share"),
    ],
)
def test_a_parameter_that_the_pipeline_does_not_have_so_is_refused_with_what_is_allowed(given, said):
    with pytest.raises(InvalidParameter) as refused:
        parse_params([given], DEFAULTS)
    assert said in str(refused.value)
    assert refused.value.name == given.partition("=")[0]
    assert "environment" not in str(refused.value)  # where settings are


@pytest.mark.parametrize("given", ["limit", "=3", ""])
def test_an_option_that_is_no_assignment_is_refused(given):
    with pytest.raises(InvalidArgument, match=f"--param is '{given}'; allowed: name=value"):
        parse_params([given], DEFAULTS)
