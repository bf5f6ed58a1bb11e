"""Which files a path means, in a folder and in a bucket alike."""

from __future__ import annotations

from pathlib import Path

import boto3
import pytest

from stagehold.sources.source_files import SourceRoots, find_files

FILES = (
    "raw/a.parquet",
    "raw/b.parquet",
    "raw/b.csv",
    "raw/_SUCCESS",
    "raw/.b.parquet.crc",
    "raw/2024/01/c.parquet",
    "raw/2024/02/d.parquet",
    "raw/2024/02/_temporary/e.parquet",
    "raw/day=_1/_p=2/f.parquet",
    "raw/written.parquet/part-0.snappy.parquet",
    "rawer/g.parquet",
)


@pytest.fixture(params=["tmp_path", "s3_lake"])
def lake(request):
    """A lake whose own name looks like a glob."""
    uri = f"{request.getfixturevalue(request.param)}/[1]*"
    if uri.startswith("s3://"):
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        client = boto3.client("s3")
        for name in FILES:
            client.put_object(Bucket=bucket, Key=f"{prefix}/{name}", Body=name.encode())
    else:
        for name in FILES:
            Path(uri, name).parent.mkdir(parents=True, exist_ok=True)
            Path(uri, name).write_text(name)
    return uri


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("raw/*.parquet", ["raw/a.parquet", "raw/b.parquet", "raw/written.parquet/part-0.snappy.parquet"]),
        ("raw/[ab].parquet", ["raw/a.parquet", "raw/b.parquet"]),
        ("raw/?.csv", ["raw/b.csv"]),
        ("raw/2024/*/*.parquet", ["raw/2024/01/c.parquet", "raw/2024/02/d.parquet"]),
        ("raw/2024/02", ["raw/2024/02/d.parquet"]),
        ("raw/2024/", ["raw/2024/01/c.parquet", "raw/2024/02/d.parquet"]),
        (
            "raw/**/*.parquet",
            [name for name in FILES if name.startswith("raw/") and name.endswith("t") and "temporary" not in name],
        ),
        ("raw/day=_1", ["raw/day=_1/_p=2/f.parquet"]),
        ("raw/a.parquet", ["raw/a.parquet"]),
        ("raw/a", []),
        ("nothing/*", []),
        ("*/g.parquet", ["rawer/g.parquet"]),
    ],
)
def test_a_path_means_a_file_a_folder_or_what_a_glob_matches(lake, pattern, found):
    files = find_files(f"${{lake}}/{pattern}", lake)
    assert [file.path for file in files] == sorted(f"{lake}/{name}" for name in found)
    assert [file.bytes for file in files] == [len(file.path.removeprefix(f"{lake}/")) for file in files]


@pytest.mark.parametrize("project", ["[x]*", "link"])
@pytest.mark.parametrize("pattern", ["*.json", "a.json", "./a.json", "../[[]x]?/a.json", "."])
def test_a_relative_path_is_seen_from_the_project_wherever_that_lies(tmp_path, monkeypatch, project, pattern):
    """And its files are called as they were from there, which is on record."""
    folder = tmp_path / "[x]*"
    folder.mkdir()
    (folder / "a.json").write_text("{}")
    (tmp_path / "link").symlink_to(folder)
    found = find_files(pattern, "/lake", str(tmp_path / project))
    monkeypatch.chdir(tmp_path / project)
    assert found == find_files(pattern, "/lake")
    assert [Path(file.path).resolve() for file in found] == [folder / "a.json"]
    assert SourceRoots("/lake", str(tmp_path / project)).address("t") == str(Path("t").absolute())


def test_a_rewritten_file_has_another_version(lake):
    (before,) = find_files("${lake}/raw/a.parquet", lake)
    if lake.startswith("s3://"):
        bucket, _, prefix = lake.removeprefix("s3://").partition("/")
        boto3.client("s3").put_object(Bucket=bucket, Key=f"{prefix}/raw/a.parquet", Body=b"other content")
    else:
        Path(lake, "raw/a.parquet").write_text("other content")
    (after,) = find_files("${lake}/raw/a.parquet", lake)
    assert (before.bytes, after.bytes) == (13, 13)
    assert before.version != after.version
