"""What code reads beside its inputs: everyday snippets, those that read and those that only look like it."""

# ruff: noqa: E501 - one snippet is one line of a table

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from stagehold.code.side_reads import SideRead, side_reads

IMPORTS = """\
import gzip
import io
import json
import os
import os.path as osp
from os import environ, getenv
from pathlib import Path
import configparser
import textwrap
import yaml
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import requests
from delta.tables import DeltaTable
from pyspark.sql import SparkSession, functions as F
from PIL import Image

SIDE = "conf/side.csv"
RATE = "TAX_RATE"
"""

ENVIRONMENT = [
    ("os.environ['A']", ["env A"]),
    ("os.environ.get('A')", ["env A"]),
    ("os.environ.get('A', 'b')", ["env A"]),
    ("os.getenv('A')", ["env A"]),
    ("os.getenv(key='A')", ["env A"]),
    ("environ['A']", ["env A"]),
    ("getenv('A', '')", ["env A"]),
    ("os.environ[RATE]", ["env TAX_RATE"]),
    ("os.environ['TAX_' + 'RATE']", ["env TAX_RATE"]),
    ("os.environ[ctx.params['name']]", ["env ?"]),
    ("'A' in os.environ", ["env A"]),
    ("dict(os.environ)", ["env ?"]),
    ("{**environ}", ["env ?"]),
    ("os.environ.items()", ["env ?"]),
    ("[name for name in os.environ]", ["env ?"]),
    ("e = os.environ\ne.get('A')", ["env A"]),
    ("os.path.expandvars('$A/x/${B}')", ["env A", "env B"]),
    ("os.environ.pop('A', None)", ["env A"]),
    ("os.environ['A'] = '1'", []),
    ("del os.environ['A']", []),
    ("os.environ.update(A='1')", []),
    ("ctx.params.get('A')", []),
    ("ctx.params['A']", []),
    ("{'A': 1}.get('A')", []),
    ("settings = {}\nsettings.get('A')", []),
    ("requests.get('http://x')", []),
    ("environment = {}\nenvironment['A']", []),
]
FILES = [
    ("open('side.csv')", ["file side.csv"]),
    ("open(SIDE, 'r')", ["file conf/side.csv"]),
    ("open('side.csv', 'rb').read()", ["file side.csv"]),
    ("with open('side.json') as f:\n    json.load(f)", ["file side.json"]),
    ("json.load(open('side.json'))", ["file side.json"]),
    ("open('side.csv', mode='r+')", ["file side.csv"]),
    ("open(ctx.params['path'])", ["file ?"]),
    ("open(f'{ctx.interval}.csv')", ["file ?"]),
    ("io.open('side.csv')", ["file side.csv"]),
    ("gzip.open('side.gz', 'rt')", ["file side.gz"]),
    ("Path('side.csv').read_text()", ["file side.csv"]),
    ("(Path('conf') / 'side.csv').read_bytes()", ["file conf/side.csv"]),
    ("Path('conf', 'side.csv').open()", ["file conf/side.csv"]),
    ("path = Path('side.csv')\nwith path.open() as f:\n    f.read()", ["file side.csv"]),
    ("Path(SIDE).resolve().open()", ["file ?"]),
    ("open(os.path.join('conf', 'side.csv'))", ["file conf/side.csv"]),
    ("open(osp.join('conf', 'side.csv'))", ["file conf/side.csv"]),
    ("pd.read_csv('side.csv')", ["file side.csv"]),
    ("pd.read_parquet(path='side.parquet')", ["file side.parquet"]),
    ("pd.read_csv(SIDE, sep=';')", ["file conf/side.csv"]),
    ("with open('side.csv') as f:\n    pd.read_csv(f)", ["file side.csv"]),
    ("pq.read_table('side.parquet')", ["file side.parquet"]),
    ("pq.ParquetFile('side.parquet')", ["file side.parquet"]),
    ("np.load('side.npy')", ["file side.npy"]),
    ("yaml.safe_load(Path('side.yaml').read_text())", ["file side.yaml"]),
    ("configparser.ConfigParser().read('side.ini')", ["file side.ini"]),
    ("Image.open('side.png')", ["file side.png"]),
    ("import polars as pl\npl.scan_csv('side.csv')", ["file side.csv"]),
    ("open('out.csv', 'w')", []),
    ("open('out.csv', mode='ab')", []),
    ("Path('out.csv').write_text('x')", []),
    ("Path('out.csv').open('w')", []),
    ("pd.read_csv(io.StringIO('a,b'))", []),
    ("text = io.BytesIO(b'')\npd.read_parquet(text)", []),
    ("pd.read_sql('select 1', None)", []),
    ("json.loads('{}')", []),
    ("yaml.safe_load('a: 1')", []),
    ("valve.open('x')", []),
    ("pd.DataFrame({'a': [1]})", []),
    ("ctx.state.read('totals')", []),
    ("Path('a').name", []),
]
SPARK = [
    ("spark.read.csv('side.csv')", ["file side.csv"]),
    ("spark.read.option('header', True).csv('side.csv')", ["file side.csv"]),
    ("(\n    spark.read.format('json')\n    .schema('a int')\n    .load('side')\n)", ["file side"]),
    ("spark.read.load('side', format='csv')", ["file side"]),
    ("spark.read.format('csv').option('path', 'side').load()", ["file side"]),
    ("spark.read.parquet('a', 'b')", ["file a", "file b"]),
    ("spark.read.json(['a', 'b'])", ["file a", "file b"]),
    ("spark.read.parquet(ctx.params['path'])", ["file ?"]),
    ("spark.read.format('delta').load('s3://x/land')", ["table s3://x/land"]),
    ("spark.read.table('marts.land')", ["table marts.land"]),
    ("spark.table('marts.land')", ["table marts.land"]),
    ("source.sparkSession.table('marts.land')", ["table marts.land"]),
    ("SparkSession.getActiveSession().table('marts.land')", ["table marts.land"]),
    ("session = SparkSession.builder.getOrCreate()\nsession.table('marts.land')", ["table marts.land"]),
    ("reader = spark.read.format('csv')\nreader.load('side.csv')", ["file side.csv"]),
    ("s = source.sparkSession\ns.read.parquet('side')", ["file side"]),
    ("spark.read.jdbc('jdbc:x', 'land')", ["table ?"]),
    ("DeltaTable.forName(spark, 'marts.land').toDF()", ["table marts.land"]),
    ("DeltaTable.forPath(spark, 's3://x/land')", ["table s3://x/land"]),
    ("import deltalake\ndeltalake.DeltaTable('x/land')", ["table x/land"]),
    ("spark.sql('SELECT * FROM marts.land')", ["table marts.land"]),
    (
        "spark.sql('select a from marts.land l join marts.rate r on l.a = r.a')",
        ["table marts.land", "table marts.rate"],
    ),
    (
        "spark.sql('SELECT * FROM `marts`.`land`, marts.rate WHERE a IN (1, 2)')",
        ["table marts.land", "table marts.rate"],
    ),
    ("spark.sql('SELECT * FROM parquet.`/data/side`')", ["file /data/side"]),
    ("spark.sql('SELECT * FROM delta.`s3://x/land`')", ["table s3://x/land"]),
    ("spark.sql('WITH l AS (SELECT * FROM marts.land), m AS (SELECT 1) SELECT * FROM l JOIN m')", ["table marts.land"]),
    ("spark.sql('SELECT * FROM (SELECT a FROM marts.land) x')", ["table marts.land"]),
    ("spark.sql(f'SELECT * FROM {ctx.params[0]}')", ["table ?"]),
    ("spark.sql('SELECT 1 -- FROM marts.land')", []),
    ("spark.sql(\"SELECT 'x FROM marts.land' AS a\")", []),
    ("spark.sql('SELECT EXTRACT(YEAR FROM d), TRIM(BOTH FROM x) FROM range(3)')", []),
    ("spark.sql('SELECT a IS DISTINCT FROM b AS c')", []),
    ("spark.sql('SELECT * FROM VALUES (1) t')", []),
    ("spark.sql('SELECT * FROM {source}', source=source)", []),
    ("source.createOrReplaceTempView('rows')\nspark.sql('SELECT * FROM Rows')", []),
    ("source.createTempView('rows')\nspark.table('rows')", []),
    ("source.createTempView('`my rows`')\nspark.sql('SELECT * FROM `my rows`')", []),
    ("source.createTempView('rows')\nspark.table('`Rows`')", []),
    ("source.createOrReplaceGlobalTempView('rows')\nspark.table('global_temp.rows')", []),
    ("view = f'rows_{ctx.interval}'\nsource.createTempView(view)\nspark.sql(f'SELECT * FROM {view}')", []),
    ("spark.sql('CREATE TEMP VIEW v AS SELECT * FROM marts.land')\nspark.table('v')", ["table marts.land"]),
    ("spark.sql('SHOW TABLES FROM marts')", []),
    ("spark.sql('SELECT k FROM rows LATERAL VIEW explode(a) e AS k, v')", ["table rows"]),
    ("spark.createDataFrame([(1,)], 'a int')", []),
    ("spark.range(10)", []),
    ("spark.read.json(source.rdd)", []),
    ("source.select('a').filter('a > 1').join(source, 'a')", []),
    ("source.write.parquet('out')", []),
    ("source.sparkSession.conf.get('spark.x')", []),
    ("source.selectExpr('a as b')", []),
    ("docs.table('contents')", []),
]


def found(folder: Path, code: str) -> tuple[SideRead, ...]:
    body = indent(code, "    ")
    module = f"{IMPORTS}\n\ndef orders(ctx, source, spark=None, valve=None, docs=None):\n{body}\n    return source\n"
    (folder / "jobs.py").write_text(module)
    return side_reads("jobs:orders", folder)


def words(reads: tuple[SideRead, ...]) -> list[str]:
    return sorted(f"{read.kind} {'?' if read.name is None else read.name}" for read in reads)


@pytest.mark.parametrize(("code", "expected"), [*ENVIRONMENT, *FILES, *SPARK])
def test_what_a_snippet_reads(tmp_path: Path, code: str, expected: list[str]) -> None:
    assert words(found(tmp_path, code)) == expected


def test_a_read_has_its_place_and_its_line(tmp_path: Path) -> None:
    code = 'rows = (\n    spark.read\n    .option("a", 1)\n    .csv("side.csv")\n)\nspark.sql("""\n  SELECT *\n  FROM marts.land\n""")'
    begin = IMPORTS.count("\n") + 3
    assert [(read.place, read.text) for read in found(tmp_path, code)] == [
        (f"jobs.py:{begin + 4}", '.csv("side.csv")'),
        (f"jobs.py:{begin + 8}", "FROM marts.land"),
    ]


PROJECT = {
    "jobs.py": """\
import os
from pyspark.sql.functions import pandas_udf, udf
from helpers import rates, Loader, UNUSED, open

LIMIT = int(os.environ["LIMIT"])


@udf("double")
def taxed(amount):
    return amount * rates()["de"]


@pandas_udf("double")
def weighted(values):
    return values * float(os.environ["WEIGHT"])


def orders(ctx, source):
    def inner(row):
        return os.getenv("INNER")

    open("not.a.builtin")
    return source.select(taxed("a"), weighted("b")).limit(LIMIT), Loader().load(), inner


def unused(ctx, source):
    return os.environ["UNUSED"]
""",
    "helpers.py": """\
import json
from pathlib import Path

UNUSED = 1


def open(name):
    return name


def rates():
    return json.loads(Path("conf/rates.json").read_text())


class Loader:
    def load(self):
        from os import environ as env

        return env["LOADER"]


def never():
    return Path("never.json").read_text()
""",
}


def test_helpers_classes_and_bodies_of_udfs_are_reached_and_the_rest_is_not(tmp_path: Path) -> None:
    for name, text in PROJECT.items():
        (tmp_path / name).write_text(text)
    reads = side_reads("jobs:orders", tmp_path)
    assert words(reads) == ["env INNER", "env LIMIT", "env LOADER", "env WEIGHT", "file conf/rates.json"]
    assert {read.place.split(":")[0] for read in reads} == {"jobs.py", "helpers.py"}


def test_code_that_cannot_be_followed_is_searched_as_far_as_it_can(tmp_path: Path) -> None:
    (tmp_path / "dynamic.py").write_text(
        "import os\ndef orders(ctx, source):\n    eval('1')\n    return os.getenv('A')\n"
    )
    assert words(side_reads("dynamic:orders", tmp_path)) == ["env A"]
    assert side_reads("missing:orders", tmp_path) == ()


def test_a_name_that_hides_a_module_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "hidden.py").write_text("import os\ndef orders(ctx, os):\n    return os.environ['A'], os.getenv('A')\n")
    assert side_reads("hidden:orders", tmp_path) == ()
