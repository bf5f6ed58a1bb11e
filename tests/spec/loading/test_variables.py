"""Where `${lake}` is resolved, and that nothing else which looks like a variable is taken as a text."""

from __future__ import annotations

import pytest
import yaml
from tests.spec.samples import VALID, Project, edited

from stagehold.errors import InvalidSpec
from stagehold.spec.loading.loader import build_pipeline

ELSEWHERE = "no variable: only ${lake} is resolved, in `path` and `splits` of a source"
OF_PARAMS = (
    "no variable: a parameter is taken as it stands. Declare `reads: {env: [API_TOKEN]}` for the stage and read "
    'os.environ["API_TOKEN"] in its function, or give a parameter of the pipeline with `--param`'
)
OF_PATHS = "${lake}, ${interval}, or ${interval.start:%Y-%m-%d} in any form"
JDBC = 'source: {kind: jdbc, url: "jdbc:x://h/d", table: t'
SOURCE = 'source: {kind: parquet, path: "${lake}/raw/lineitem/*.parquet", splits: 4}'
REFUSED = [
    # edit => line, field, the variable, what may be written
    ("segment: BUILDING => token: '${API_TOKEN}'", 12, "params.token", "${API_TOKEN}", OF_PARAMS),
    ("segment: BUILDING => a: [1, {b: 'x-${API_TOKEN}-y'}]", 12, "params.a.1.b", "${API_TOKEN}", OF_PARAMS),
    ("segment: BUILDING => token: '${API_TOKEN:-none}'", 12, "params.token", "${API_TOKEN:-none}", OF_PARAMS),
    ("segment: BUILDING => token: '$${API_TOKEN}'", 12, "params.token", "${API_TOKEN}", OF_PARAMS),
    ("segment: BUILDING => place: '${lake}'", 12, "params.place", "${lake}", "no variable: a parameter is taken"),
    ("segment: BUILDING => '${A}': 1", 12, "params.${A}", "${A}", "no variable in a name"),
    ("limits: [1, 2] => token: '${API_TOKEN}'", 17, "stages.orders.params.token", "${API_TOKEN}", OF_PARAMS),
    ("raw/lineitem => raw/${lake", 20, "stages.lineitem.source.path", "${lake/*.parquet", OF_PATHS),
    (
        f"{SOURCE} => source:\\n      kind: parquet\\n      splits:\\n      - a\\n      - ['${{lake}}', '${{home}}/c']",
        *(24, "stages.lineitem.source.splits.1.1", "${home}", OF_PATHS),
    ),
    (
        f"{SOURCE} => {JDBC}, splits: [\"a = '${{lake}}'\"]}}",
        *(20, "stages.lineitem.source.splits.0", "${lake}", "${interval}, or "),
    ),
    (
        f"{SOURCE} => {JDBC}, splits: 1, options: {{fetch: '${{SIZE}}'}}}}",
        *(20, "stages.lineitem.source.options.fetch", "${SIZE}", "${interval}, or ${interval.start:"),
    ),
    ("failover: full => airflow: {owner: '${OWNER}'}", 10, "airflow.owner", "${OWNER}", ELSEWHERE),
    ("schedule_mode: eager => run_timeout: '${T}'", 3, "run_timeout", "${T}", ELSEWHERE),
    ('failover: full => spark: {"spark.sql.x": "${sys.y}"}', 10, "spark.spark.sql.x", "${sys.y}", ELSEWHERE),
]  # fmt: skip


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


@pytest.mark.parametrize(("edit", "line", "field", "variable", "allowed"), REFUSED)
def test_a_variable_that_nobody_resolves_is_refused_where_it_stands(project, edit, line, field, variable, allowed):
    found = [problem for problem in project.problems(edited(edit)) if problem[2].startswith("${")]
    assert [(where, name) for where, name, _ in found] == [(line, field)]
    assert found[0][2].startswith(f"{variable} | {allowed}")


def test_the_lake_is_resolved_in_paths_of_sources_and_reads(project):
    reads = "reads: {files: ['${lake}/side/*.json'], tables: ['${lake}/side/countries']}"
    splits = "source: {kind: parquet, splits: [['${lake}/a', '${lake}/b']]}"
    project.load(edited(f"limits: [1, 2]}} => limits: [1, 2]}}\\n    {reads}", f"{SOURCE} => {splits}"))


def test_what_only_looks_like_one_is_a_text(project):
    params = "{a: '$HOME', b: '$', c: '{x}', d: '{{ ds }}', e: 'x{2}$', f: '$(date)'}"
    pipeline = project.load(edited(f"{{segment: BUILDING}} => {params}"))
    assert pipeline.params == yaml.safe_load(params)


def test_python_is_refused_what_a_file_is(project):
    declared = {**yaml.safe_load(VALID), "params": {"token": ("${API_TOKEN}",)}}
    with pytest.raises(InvalidSpec, match=r"<python>.*params\.token\.0: got \$\{API_TOKEN\}; allowed: no variable"):
        build_pipeline(declared, project=project.root, suites=project.suites)
