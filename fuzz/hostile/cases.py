"""A hostile case of each kind, and what has to come of it."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import yaml

from stagehold.checkpoints.checkpoint import SnapshotKind
from stagehold.checkpoints.stage_ids import StageShape
from stagehold.errors import StageholdError
from stagehold.lake.checkpoints.manifest import (
    CheckpointedRun,
    Manifest,
    PartReference,
    StageManifest,
    decode_manifest,
    encode_manifest,
)
from stagehold.model.stage_state import StateColumn, StateKind, StateShape
from stagehold.settings import LIBRARY

MOST_SECONDS = 5.0  # of processor time; most take milliseconds
CANARY = "CANARY"
SPECS, SUITES = LIBRARY / "pipelines", LIBRARY / "suites"

# What is put in the place of a value: nothing, other types, limits, text that means something to somebody.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 10**30, -(10**400), 0.1, float("nan"), float("inf"), "", " ", [], {}, [[]], {"": ""}),
    *([None], {"a": {"a": {"a": None}}}, "x" * 70_000, "\0", "\ud800", "‮", "é" * 300, b"\xff", "null", "~", "1e999"),
    *("../../../etc/passwd", f"/tmp/{CANARY}", "file:///etc/passwd", "s3://", "${lake}/../..", "${interval}", "${x.y}"),
    *("${interval.start:%Y-%f" + "%n" * 50 + "}", "{0.__class__}", "%(x)s", "'; DROP TABLE runs; --", "$(touch x)"),
    *("<script>alert(1)</script>", "os:system", "builtins:eval", "jobs.tpch", ":", "a:b:c", "jobs.tpch:", "..:x"),
    *("__import__('os').system('true')", "999999999999d", "1e9min", "-1s", "0 0 31 2 *", "* * * * * * *", "@reboot"),
    *("(a+)+$", "[[:x:]]", "(?P<", "2026-13-45", "9999-12-31T23:59:60Z", 1 << 64, {"kind": "parquet"}, ["a", 1, None]),
)
# What is put between the characters of a text.
TEXTS = (
    *("\0", "\t", "\r", "﻿", "{", "}", "[", "]", ": ", "- ", "&a ", "*a ", "!!", "%", "---\n", "...\n", '"', "'", "#"),
    *(
        "!!python/object/apply:os.system ['touch " + CANARY + "']",
        "!!python/name:os.system ",
        "!!binary x",
        "!!set {a}",
    ),
    *(
        "<<: *a\n",
        "<<: [1]\n",
        "? [a]\n: b\n",
        "{" * 3000,
        "[" * 3000,
        "- " * 3000,
        "&a [*a]\n",
        "\x85",
        " ",
        "? " * 500,
    ),
)
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(8)
)


@dataclass(frozen=True)
class Outcome:
    """``word`` says what came of it; ``wrong`` is what should not be, and empty if nothing is."""

    word: str
    given: str
    wrong: str = ""


@dataclass(frozen=True)
class Target:
    """A folder with a project, in which nothing may change but the file that is handed in."""

    folder: Path

    @staticmethod
    def make(folder: Path) -> Target:
        project = folder / "project"
        (project / "pipelines").mkdir(parents=True)
        shutil.copytree(SUITES, project / "suites")
        shutil.copytree(LIBRARY.parent / "jobs", project / "jobs", ignore=shutil.ignore_patterns("__pycache__"))
        return Target(folder)

    @property
    def project(self) -> Path:
        return self.folder / "project"

    def put(self, name: str, content: bytes) -> Path:
        file = self.project / name
        file.write_bytes(content)
        return file

    def files(self) -> Mapping[str, bytes]:
        return {str(path): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def outcome(self, given: bytes, read: Callable[[], object]) -> Outcome:
        """What comes of reading it, in time, without a trace and without a file."""
        shown, before, begun = given.decode(errors="replace"), self.files(), time.process_time()
        word, wrong = "read", ""
        try:
            read()
        except StageholdError as error:
            word = "refused"
            text = str(error)
            if not text.strip() or "Traceback" in text or "0x7f" in text:
                wrong = f"the error says: {text[:300]!r}"
        except Exception as error:  # noqa: BLE001 - any other is what is looked for
            word, wrong = "broken", f"{type(error).__name__}: {str(error)[:300]}"
        if (seconds := time.process_time() - begun) > MOST_SECONDS:
            wrong = wrong or f"took {seconds:.1f} s"
        if self.files() != before or Path(f"/tmp/{CANARY}").exists() or Path(CANARY).exists():
            wrong = "a file was written"
        return Outcome(word, shown, wrong)


def spec(target: Target, seed: str) -> Outcome:
    from stagehold.spec.loading.loader import load_pipeline

    content = hostile_yaml(Random(f"spec/{seed}"), sorted(SPECS.glob("*.yaml")))
    file = target.put("pipelines/hostile.yaml", content)
    folders = {"project": target.project, "suites": target.project / "suites"}
    return target.outcome(content, lambda: load_pipeline(file, **folders))


def suite(target: Target, seed: str) -> Outcome:
    from stagehold.gates.suite_files import load_suite

    content = hostile_yaml(Random(f"suite/{seed}"), sorted(SUITES.glob("*.yaml")))
    file = target.put("suites/hostile.yaml", content)
    return target.outcome(content, lambda: load_suite(file, target.project))


def manifest(target: Target, seed: str) -> Outcome:
    """With its checksum made anew half of the time: who can write there can do that, too."""
    random = Random(f"manifest/{seed}")
    facts = changed(json.loads(good_manifest()), random)
    if isinstance(facts, dict) and random.random() < 0.5:
        facts.pop("checksum", None)
        facts["checksum"] = hashlib.sha256(_written(facts)).hexdigest()
    content = disturbed(_written(facts), random) if random.random() < 0.3 else _written(facts)
    return target.outcome(content, lambda: decode_manifest(content, 1, "chk-1/_metadata.json"))


def parameter(target: Target, seed: str) -> Outcome:
    from stagehold.cli.common.request import parse_params

    random = Random(f"parameter/{seed}")
    defaults = {"text": "a", "number": 1, "share": 0.5, "switch": True, "many": [1], "none": None}
    name = random.choice([*defaults, "", "other", "__class__", "a=b", "\0"])
    value = random.choice(VALUES)
    text = f"{name}={value if isinstance(value, str) else json.dumps(_with_text_keys(value), default=str)}"
    return target.outcome(text.encode(errors="replace"), lambda: parse_params([text], defaults))


def setting(target: Target, seed: str) -> Outcome:
    """Settings come from who may do everything; they are to be refused in words all the same."""
    from stagehold.local.airflow_access import airflow_access
    from stagehold.settings import load_settings
    from stagehold.spark.session.remote_server import remote_server

    random = Random(f"setting/{seed}")
    name = random.choice(
        ["SPARK_REMOTE", "AIRFLOW_URL", "AIRFLOW_CREDENTIALS", "LEDGER", "SANDBOX", "SANDBOXES", "SPARK_PORT", "LAKE"]
    )
    text = str(random.choice(VALUES)).replace("\0", "")
    if random.random() < 0.5:
        text = disturbed(f"sc://host:1/;token={text}".encode(errors="replace"), random).decode(errors="replace")
    given = {"STAGEHOLD_HOME": str(target.project), f"STAGEHOLD_{name}": text.replace("\0", "")}

    def read() -> None:
        from stagehold.ledger.database.engine import Database

        settings = load_settings(given)
        Database(settings.ledger_url)
        if settings.spark_remote:
            remote_server(settings)
        if settings.airflow_url:
            airflow_access(settings)

    return target.outcome(f"{name}={text}".encode(errors="replace"), read)


KINDS: tuple[Callable[[Target, str], Outcome], ...] = (spec, suite, manifest, parameter, setting)


def hostile_yaml(random: Random, goods: list[Path]) -> bytes:
    """A good file with one to four changes to its values, to its text, or to its bytes."""
    text = random.choice(goods).read_text()
    if random.random() < 0.02:
        return (BOMB + text).encode()
    if random.random() < 0.6:
        document = yaml.safe_load(text)
        for _ in range(random.randint(1, 4)):
            document = changed(document, random)
        try:
            return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode()
        except (yaml.YAMLError, ValueError, UnicodeError):
            return repr(document).encode(errors="replace")
    return disturbed(text.encode(), random)


def changed(document: Any, random: Random) -> Any:
    """The document with one value replaced, taken out, doubled or put under another name."""
    document = copy.deepcopy(document)
    places = list(_places(document))
    if not places:
        return random.choice(VALUES)
    holder, name = random.choice(places)
    how = random.random()
    if how < 0.55:
        holder[name] = random.choice(VALUES)
    elif how < 0.7:
        del holder[name]
    elif how < 0.85 and isinstance(holder, dict):
        other = random.choice([value for value in VALUES if isinstance(value, str | int | float | None)])
        holder[other] = holder.pop(name)
    elif isinstance(holder, dict):
        holder[f"{name}2"] = holder[name]
    else:
        holder.insert(0, holder[name])
    return document


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Every holder with the name or number of something in it."""
    found: list[tuple[Any, Any]] = []
    parts = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for name, part in parts:
        found += [(document, name), *_places(part)]
    return found


def disturbed(content: bytes, random: Random) -> bytes:
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(content) + 1)
        how = random.random()
        if how < 0.6:
            content = content[:at] + random.choice(TEXTS).encode() + content[at:]
        elif how < 0.8:
            content = content[:at] + random.randbytes(random.randint(1, 4)) + content[at:]
        else:
            content = content[:at] + content[random.randrange(len(content) + 1) :]
    return content


def _written(facts: Any) -> bytes:
    return json.dumps(_with_text_keys(facts), sort_keys=True, separators=(",", ":"), default=str).encode()


def _with_text_keys(facts: Any) -> Any:
    if isinstance(facts, dict):
        return {str(name): _with_text_keys(part) for name, part in facts.items()}
    return [_with_text_keys(part) for part in facts] if isinstance(facts, list) else facts


def good_manifest() -> bytes:
    """As small as it can be with a stage, a part and state in it."""
    part = PartReference(written_by=1, sha256="ab" * 32, bytes=10, first=0, partitions=4)
    state = StateShape("totals", StateKind.KEYED, (StateColumn("id", "bigint"),), ("id",), None)
    shape = StageShape("orders", "orders", "jobs:orders", frozenset({"customer"}))
    stage = StageManifest(shape, 4, 4, (part,), (state,), None)
    run = CheckpointedRun("nightly", "2026-11-20", "r1")
    taken_at = datetime(2026, 11, 20, tzinfo=UTC)
    return encode_manifest(Manifest(1, SnapshotKind.CHECKPOINT, None, run, "/lake", taken_at, {"a": 1}, (stage,)))
