"""Whatever happened to a stored checkpoint, it is read as it was written, or refused with words that help."""

from __future__ import annotations

import hashlib
import json
import random
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.lake.checkpoints.samples import PIPELINE, RUN, SHAPES, checkpoint, record, stage, stored

from stagehold.checkpoints.checkpoint import StageSnapshot
from stagehold.errors import CheckpointCorrupt, CheckpointTooNew, Terminal
from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.lake.store.files import files_at
from stagehold.model.source_position import VersionsRead
from stagehold.model.stage_state import StateColumn, StateKind, StateShape

pytestmark = pytest.mark.slow

STATE = StageSnapshot(
    SHAPES[1],
    2,
    128,
    states=(
        StateShape("sëen", StateKind.KEYED, (StateColumn("k", "bigint"),), ("k",), "xxhash"),
        StateShape("files", StateKind.SPLIT, (StateColumn("path", "string"),)),
    ),
    position=VersionsRead(None, 3),
)


@pytest.fixture
def there(tmp_path):
    stored_ones = stored(str(tmp_path))
    stored_ones.write(checkpoint(1, stage(map(record, range(1_200))), STATE), PIPELINE)
    stored_ones.write(checkpoint(2, stage([record(700, 1)]), STATE), PIPELINE, builds_on=1)
    return stored_ones


def manifest_of(there) -> Path:
    return Path(there.uri, "0000000002.json")


def parts_of(there) -> list[Path]:
    return [Path(there.uri, part.file) for part in there.read_manifest(2).parts]


def refused(there, *words: str) -> CheckpointCorrupt:
    with pytest.raises(CheckpointCorrupt) as raised:
        there.read_checkpoint(2)
    error = raised.value
    assert isinstance(error, Terminal)
    assert error.checkpoint == 2
    assert there.uri in str(error)
    assert re.search(r"(\d{10}\.json|\.parquet) ", str(error))
    assert "Nothing was restored and nothing was deleted." in str(error)
    assert str(error).endswith("then run `stagehold resume`.")
    assert all(word in str(error) for word in words)
    return error


# Accidents, a hundred of them


def flip(path, chance):
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def truncate(path, chance):
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def empty(path, chance):
    path.write_bytes(b"")


def append(path, chance):
    path.write_bytes(path.read_bytes() + chance.choice([b"\n", b" ", b"{}", b"PAR1"]))


def delete(path, chance):
    path.unlink()


def cut_out(path, chance):
    content = path.read_bytes()
    start = chance.randrange(len(content) - 10)
    path.write_bytes(content[:start] + content[start + chance.randint(1, 10) :])


def leaves(facts, path=()):
    """Every place in a manifest that holds one value."""
    if isinstance(facts, dict | list) and facts:
        for key, value in facts.items() if isinstance(facts, dict) else enumerate(facts):
            yield from leaves(value, (*path, key))
    else:
        yield path


def edit_field(path, chance):
    facts = json.loads(path.read_bytes())
    *way, last = chance.choice(list(leaves(facts)))
    place = facts
    for step in way:
        place = place[step]
    others = [value for value in ("other", 7, None, True, [], {}) if json.dumps(value) != json.dumps(place[last])]
    place[last] = chance.choice(others)
    path.write_text(json.dumps(facts, sort_keys=True, separators=(",", ":")))


def drop_field(path, chance):
    facts = json.loads(path.read_bytes())
    del facts[chance.choice(list(facts))]
    path.write_text(json.dumps(facts, sort_keys=True, separators=(",", ":")))


def duplicate_key(path, chance):
    """The last of two counts for most readers, so its checksum is right."""
    key = chance.choice(list(json.loads(path.read_bytes())))
    path.write_bytes(path.read_bytes().replace(b"{", f'{{"{key}":"x",'.encode(), 1))


def spaces(path, chance):
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=chance.randint(0, 4)))


ANY_FILE = (flip, truncate, empty, append, delete, cut_out)
MANIFEST_ONLY = (edit_field, drop_field, duplicate_key, spaces)


@pytest.mark.parametrize("seed", range(100))
def test_a_damaged_checkpoint_is_refused(there, seed):
    chance = random.Random(seed)
    damage = chance.choice([*ANY_FILE, *MANIFEST_ONLY])
    file = manifest_of(there)
    if damage in ANY_FILE:
        file = chance.choice([file, *parts_of(there)])
    damage(file, chance)
    refused(there, file.name)


def test_parts_in_each_others_place_are_refused(there):
    one, other = parts_of(there)[:2]
    contents = one.read_bytes(), other.read_bytes()
    other.write_bytes(contents[0])
    one.write_bytes(contents[1])
    refused(there, one.name)


def test_the_part_of_another_checkpoint_under_the_name_of_this_one_is_refused(there):
    mine = next(path for path in parts_of(there) if path.name.startswith("0000000002"))
    old = Path(there.uri, there.read_manifest(1).parts[1].file)
    mine.write_bytes(old.read_bytes())
    refused(there, mine.name)


def test_the_manifest_of_another_number_is_refused(there):
    Path(there.uri, "0000000001.json").rename(manifest_of(there))
    refused(there, "is the manifest of checkpoint 1 of run run of sample")


@pytest.mark.parametrize("other", [{"pipeline": "other"}, {"interval": "2026-01-02"}, {"run_id": "other"}], ids=str)
def test_the_manifest_of_another_run_is_refused(there, tmp_path, other):
    folder = StoredCheckpoints(str(tmp_path), CheckpointedRun(**{**vars(RUN), **other}))
    Path(folder.uri).mkdir(parents=True)
    Path(folder.uri, "0000000002.json").write_bytes(manifest_of(there).read_bytes())
    refused(folder, "is the manifest of checkpoint 2 of run run of sample, interval 2026-01-01")


def test_nothing_is_built_on_a_damaged_checkpoint(there):
    parts_of(there)[0].write_bytes(b"PAR1")
    with pytest.raises(CheckpointCorrupt) as raised:
        there.write(checkpoint(3, stage([record(0, 2)])), PIPELINE, builds_on=2)
    assert raised.value.checkpoint == 2
    assert there.numbers() == (1, 2)


def test_what_is_missing_in_a_bucket_is_refused_alike(s3_lake):
    there = stored(s3_lake)
    refused(there, "0000000002.json is missing")
    part = there.write(checkpoint(2, stage([record(0)])), PIPELINE).parts[0]
    files_at(there.uri).remove([part.file])
    refused(there, f"{part.file} is missing")


# Somebody who mends the checksum as well


def forge(there, change) -> None:
    facts = json.loads(manifest_of(there).read_bytes())
    del facts["checksum"]
    change(facts)
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()
    facts["checksum"] = hashlib.sha256(canonical).hexdigest()
    manifest_of(there).write_text(json.dumps(facts, sort_keys=True, separators=(",", ":")))


def first(facts):
    return facts["stages"][0]["parts"][0]


@pytest.mark.parametrize("path", ["number", "kind", "taken_at", "spec", "stages", "name", "run_id"])
def test_a_manifest_without_a_field_is_refused(there, path):
    forge(there, lambda facts: facts.pop(path))
    refused(there, "0000000002.json says what cannot be")


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts.update(more=1),
        lambda facts: facts.update(number="2"),
        lambda facts: facts.update(number=float("inf")),
        lambda facts: facts.update(kind="ordinary"),
        lambda facts: facts.update(taken_at="yesterday"),
        lambda facts: facts.update(taken_at=7),
        lambda facts: facts.update(spec="all of it"),
        lambda facts: facts.update(stages={}),
        lambda facts: facts.update(stages=[None]),
        lambda facts: facts.update(pipeline=None),
        lambda facts: facts["stages"][0].pop("reads"),
        lambda facts: facts["stages"][0].update(parallelism=True),
        lambda facts: facts["stages"][1]["states"][0].update(kind="hashed"),
        lambda facts: facts["stages"][1]["states"][1].update(columns=["path"]),
        lambda facts: first(facts).update(file="../../other.parquet"),
        lambda facts: first(facts).update(sha256="x"),
        lambda facts: first(facts).update(first=None),
    ],
)
def test_a_manifest_that_says_what_cannot_be_is_refused(there, change):
    forge(there, change)
    refused(there, "0000000002.json", "it was changed by hand")


@pytest.mark.parametrize("version", [0, None, "1", 1.5])
def test_a_version_that_never_was_is_refused(there, version):
    forge(there, lambda facts: facts.update(version=version))
    refused(there, "0000000002.json")


def test_a_newer_version_asks_for_a_newer_stagehold(there):
    forge(there, lambda facts: facts.update(version=2))
    error = refused(there, "0000000002.json has format version 2, and this Stagehold knows 1", "Install the Stagehold")
    assert isinstance(error, CheckpointTooNew)


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: parts.reverse(),
        lambda parts: parts.append(parts[0]),
        lambda parts: parts[0].update(first=500) or parts[1].update(first=0) or parts[:2].reverse(),
        lambda parts: parts[0].update(first=1),
        lambda parts: parts[0].update(partitions=499),
        lambda parts: parts[0].update(bytes=5),
    ],
)
def test_references_to_the_wrong_parts_are_refused(there, change):
    forge(there, lambda facts: change(facts["stages"][0]["parts"]))
    refused(there)


def replaced(there, content: bytes) -> None:
    """Another first part, and a manifest that refers to it as if it had always been there."""
    sha256 = hashlib.sha256(content).hexdigest()
    file = f"parts/0000000001-{sha256}.parquet"
    Path(there.uri, file).write_bytes(content)
    forge(there, lambda facts: first(facts).update(file=file, sha256=sha256, bytes=len(content)))


def test_a_part_that_is_no_parquet_is_refused(there):
    replaced(there, b"PAR1 or not")
    refused(there, "is no part of a checkpoint")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table.drop_columns(["rows"]), "its columns are not those of a part"),
        (lambda table: table.slice(1), "does not have 500 partitions"),
        (lambda table: pa.concat_tables([table.slice(1), table.slice(0, 1)]), "in ascending order"),
        (lambda table: pa.concat_tables([table.slice(1), table.slice(1, 1)]), "in ascending order"),
        (lambda table: with_column(table, "state", "lost"), "'lost' is not a valid PartitionState"),
        (lambda table: with_column(table, "stage_id", "b"), "partitions that are not those of stage"),
    ],
)
def test_a_part_that_says_what_cannot_be_is_refused(there, change, words):
    sink = pa.BufferOutputStream()
    pq.write_table(change(pq.read_table(parts_of(there)[0])), sink)
    replaced(there, bytes(sink.getvalue()))
    refused(there, words, ".parquet")


def with_column(table: pa.Table, name: str, value: str) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(name), pa.array([value] * len(table)))
