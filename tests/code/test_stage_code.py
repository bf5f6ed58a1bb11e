"""What changes a stage's hash, what does not, and what has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagehold.code.project import find_module
from stagehold.code.stage_code import CodeFingerprint, code_fingerprint
from stagehold.code.unchanging_files import unchanging_files

FILES = {
    "jobs/tpch.py": '''
"""Stages."""

from __future__ import annotations

import functools
import typing
from typing import TYPE_CHECKING

import helpers.dates
from helpers import text
from helpers.money import net as net_of
from . import shared
from .shared import Base, traced
from pyspark.sql import functions as F
from stagehold import stage

if TYPE_CHECKING:
    from helpers.types import Frame

LIMIT = 10
OTHER = 11
RATES: dict[str, int] = {"a": 1}
RATES["b"] = 2
LOWEST = HIGHEST = 0
COUNT = 1
COUNT += 1
try:
    import quick
except ImportError:
    quick = None


@stage
def orders(ctx, source: Frame, depth=LIMIT):
    """Orders."""
    from helpers import local

    def inner(row):
        return text.clean(row) + COUNT

    lineitem = net_of(source)  # a local name, not the stage
    rows = [inner(row) for row in lineitem]
    return rows, helpers.dates.start(), local.near(), Cleaner(), F.sum("a"), shared.rate, RATES


@stage
def lineitem(ctx, source):
    return source, OTHER


@stage
def joined(ctx, orders, lineitem):
    return orders, lineitem


class Cleaner(Base):
    limit = LOWEST

    def clean(self):
        return functools.reduce(self.step, [])

    def step(self):
        return wrapped()


@functools.cache
@traced
def wrapped():
    return 1


def unused():
    return eval("1")


if __name__ == "__main__":
    eval("orders()")
''',
    "jobs/shared.py": """
import logging

rate = 1
unrelated = 2
logging.captureWarnings(True)


class Base:
    def base(self):
        return 1


def traced(function):
    return function
""",
    "helpers/__init__.py": "from .text import clean\nVERSION = 1\n",
    "helpers/text.py": "def clean(row):\n    return strip(row)\n\ndef strip(row):\n    return row\n\ndef "
    "other(row):\n    return 1\n",
    "helpers/money.py": "from helpers import clean\n\ndef net(frame):\n    return clean(frame)\n\ndef "
    "gross(frame):\n    return 2\n",
    "helpers/dates.py": "from datetime import date\n\ndef start():\n    return date(1995, 3, 15)\n\ndef end():\n    "
    "return 2\n",
    "helpers/local.py": "def near():\n    return 1\n",
    "helpers/types.py": "Frame = object\n",
    "plain/steps.py": "from plain.more import ready\n\ndef step(ctx, source):\n    return ready\n",
    "plain/more.py": "ready = 1\n",
}


class Code:
    """A project folder whose files are edited one replacement at a time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.root / name).read_text()
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        self.write(name, text.replace(old, new))

    def fingerprint(self, job: str = "jobs.tpch:orders") -> CodeFingerprint:
        return code_fingerprint(job, self.root)


@pytest.fixture
def code(tmp_path: Path) -> Code:
    return Code(tmp_path)


TPCH, SHARED = "jobs/tpch.py", "jobs/shared.py"
HASHES = ["9a31987a00ea25e1", "7ac5d5b28cdd894a", "06408f16449d8b25", "352870c60146a6bd"]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (TPCH, "+ COUNT", "- COUNT"),  # the function itself
        (TPCH, "depth=LIMIT", "depth=LOWEST"),  # a default value
        (TPCH, "LIMIT = 10", "LIMIT = 12"),  # the constant it names
        (TPCH, "COUNT = 1", "COUNT = 2"),  # a constant assigned
        (TPCH, "COUNT += 1", "COUNT += 2"),  # and assigned again
        (TPCH, '{"a": 1}', '{"a": 2}'),  # an annotated constant
        (TPCH, 'RATES["b"] = 2', 'RATES["b"] = 3'),  # changed in place
        (TPCH, "LOWEST = HIGHEST = 0", "LOWEST = HIGHEST = 1"),  # used by a class it uses
        (TPCH, "self.step, []", "self.step, [1]"),  # a method of that class
        (TPCH, "def wrapped():\n    return 1", "def wrapped():\n    return 2"),  # called by that method
        (TPCH, "@traced\n", ""),  # a decorator
        (TPCH, "@functools.cache\n", "@functools.lru_cache\n"),  # an installed decorator
        (TPCH, "quick = None", "quick = 0"),  # what importing the module runs
        (TPCH, "import functions as F", "import types as F"),  # the same name for something else installed
        (TPCH, 'F.sum("a")', 'F.max("a")'),
        (TPCH, "import net as net_of", "import gross as net_of"),  # the same name for something else of ours
        (SHARED, "rate = 1", "rate = 1.0"),  # an attribute of an imported module
        (SHARED, "def base(self):\n        return 1", "def base(self):\n        return 2"),  # a base class
        (SHARED, "    return function", "    return None"),  # a decorator's body
        (SHARED, "captureWarnings(True)", "captureWarnings(False)"),  # an effect of importing
        ("helpers/text.py", "return strip(row)", "return strip(1)"),  # through a module attribute
        ("helpers/text.py", "def strip(row):\n    return row", "def strip(row):\n    return 0"),  # and one step further
        ("helpers/money.py", "clean(frame)", "clean(0)"),  # through an alias
        ("helpers/__init__.py", "from .text import clean", "from .text import other as clean"),  # through a package
        ("helpers/dates.py", "15", "16"),  # through a dotted import
        ("helpers/types.py", "object", "int"),  # a type that an annotation names: some libraries read them
        ("helpers/local.py", "return 1", "return 2"),  # imported inside the function
    ],
)
def test_code_that_can_be_reached_counts(code: Code, file: str, old: str, new: str) -> None:
    before = code.fingerprint()
    code.edit(file, old, new)
    after = code.fingerprint()
    assert before.value
    assert after.value
    assert before.value != after.value


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (TPCH, "  # a local name, not the stage", ""),  # a comment
        (TPCH, '"""Orders."""', '"""All orders."""'),  # a docstring
        (TPCH, '    """Orders."""\n', ""),
        (TPCH, '"""Stages."""', '"""More stages."""'),
        (TPCH, "def inner(row):", "def inner(\n        row,\n    ):"),  # formatting
        (TPCH, 'F.sum("a")', "F.sum('a')"),
        (TPCH, "LIMIT = 10", "LIMIT = 0xA"),
        (TPCH, "return source, OTHER", "return OTHER"),  # another stage, though a local variable has its name
        (TPCH, "OTHER = 11", "OTHER = 12"),  # a constant of another stage
        (TPCH, "return orders, lineitem", "return lineitem"),
        (TPCH, 'return eval("1")', "return 2"),  # unused code
        (TPCH, 'eval("orders()")', "pass"),  # what runs only as a script
        (SHARED, "unrelated = 2", "unrelated = 3"),
        ("helpers/text.py", "return 1", "return 2"),
        ("helpers/money.py", "return 2", "return 3"),
        ("helpers/dates.py", "return 2", "return 3"),
        ("helpers/__init__.py", "VERSION = 1", "VERSION = 2"),
    ],
)
def test_what_cannot_change_the_result_does_not_count(code: Code, file: str, old: str, new: str) -> None:
    before = code.fingerprint()
    code.edit(file, old, new)
    assert before.value is not None
    assert code.fingerprint() == before


def test_parameters_do_not_lead_to_stages_of_the_same_name(code: Code) -> None:
    before = code.fingerprint("jobs.tpch:joined")
    code.edit(TPCH, "+ COUNT", "- COUNT")
    assert code.fingerprint("jobs.tpch:joined") == before


def test_stages_of_one_module_have_hashes_of_their_own(code: Code) -> None:
    assert len({code.fingerprint(f"jobs.tpch:{name}").value for name in ("orders", "lineitem", "joined")}) == 3


def test_hashes_are_those_that_they_always_were(code: Code) -> None:
    """Another text here has everybody's data computed again."""
    jobs = ("jobs.tpch:orders", "jobs.tpch:lineitem", "jobs.tpch:joined", "plain.steps:step")
    assert [code.fingerprint(job).value for job in jobs] == HASHES


def test_the_files_that_were_read_are_named(code: Code) -> None:
    assert code.fingerprint("plain.steps:step").files == ("plain/more.py", "plain/steps.py")
    assert set(code.fingerprint().files) == set(FILES) - {"plain/more.py", "plain/steps.py"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("return eval('1')", "jobs.odd line 4 uses eval"),
        ("exec('1')", "uses exec"),
        ("return globals()['x']", "uses globals"),
        ("return __import__('helpers.text')", "uses __import__"),
        ("return open(__file__)", "uses __file__; relative paths begin at the project's folder"),
        ("sys.path.append('.')", "uses sys.path; the project's modules, and those beside a script, are found"),
        ("return ctx.run.__globals__", "uses __globals__"),
        ("return getattr(text, 'clean')", "uses the module helpers.text as a value"),
        ("setattr(text, 'clean', None)", "uses the module helpers.text as a value"),
        ("return helpers.text", "uses the module helpers.text as a value"),
        ("return text.gone", "helpers.text does not show what gone is"),
        ("return importlib.import_module('x')", "uses importlib"),
        ("import importlib.util\n    return importlib.util.find_spec('x')", "uses importlib"),
        ("from importlib import import_module\n    return import_module('x')", "uses importlib"),
        ("return sys.modules['helpers']", "uses sys.modules"),
        ("from helpers.gone import x", "helpers.gone is not in the project"),
        ("from helpers import gone\n    return gone", "helpers does not show what gone is"),
        ("from plain import more\n    return more", "uses the module plain.more as a value"),
        ("from broken import x\n    return x", "invalid syntax"),
        ("from starred import x\n    return x", "starred does not show what x is"),
        ("from unclear import x\n    return x", "unclear, by a star import, uses sys.modules"),
        ("from listed import x\n    return x", "imports * of listing, whose __all__ may name modules"),
        ("return " + "(" * 150 + "1" + ")" * 150 + "." + ".".join(["a"] * 2000), "recursion"),
    ],
)
def test_code_that_cannot_be_followed_has_no_hash(code: Code, line: str, reason: str) -> None:
    code.write("broken.py", "def x(:\n")
    code.write("starred.py", "from helpers.text import *\n")
    code.write("unclear.py", "from sys import *\n")
    code.write("listed.py", "from listing import *\n")
    code.write("listing/__init__.py", "__all__ = ['rates']\n")
    code.write(
        "jobs/odd.py",
        f"import importlib, sys\nimport helpers.text\nfrom helpers import text\ndef odd(ctx, source):\n    {line}\n",
    )
    fingerprint = code.fingerprint("jobs.odd:odd")
    assert fingerprint.value is None
    assert reason in str(fingerprint.reason)


@pytest.mark.parametrize(
    "job", ["jobs.tpch:gone", "jobs.gone:orders", "jobs.tpch", "", "jobs tpch:x", "pyspark.sql:functions"]
)
def test_a_job_that_is_not_there_has_no_hash(code: Code, job: str) -> None:
    assert code.fingerprint(job).value is None
    assert code.fingerprint(job).reason


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        ("@register\ndef filler(): return {}\n", True),  # our decorator may remember the function
        ("@F.udf\ndef filler(): return {}\n", False),  # an installed one cannot put it into REGISTRY
        ("class Filler(Base): x = {}\n", True),  # a base class may collect its children
        ("class Filler(dict, metaclass=Base): x = {}\n", True),
        ("class Filler(dict): x = {}\n", False),
        ("class Filler(dict):\n    x = register({})\n", True),
        ("filler = register({})\n", True),
        ("filler = lambda: register({})\n", False),
        ("def filler(a, *, b, c=register({})): pass\n", True),
        ("def filler():\n    return register({})\n", False),
        ("filler = F.lit({})\n", False),
        ("filler = ''.join(['{}'])\n", False),
        ("F.lit({})\n", True),
        ("for one in [{}]: pass\n", True),
        ("REGISTRY.extra = {}\n", True),
        ("REGISTRY['x'], filler = {}, 1\n", True),
        ("(lambda: 1)({})\n", True),
    ],
)
def test_unused_code_counts_when_importing_it_can_change_what_is_used(code: Code, body: str, counts: bool) -> None:
    def with_value(value: int) -> str | None:
        head = (
            "from pyspark.sql import functions as F\nREGISTRY = []\ndef register(one): "
            "REGISTRY.append(one)\nclass Base(type): pass\n"
        )
        code.write(
            "jobs/registry.py", head + body.replace("{}", str(value)) + "def use(ctx, source): return REGISTRY\n"
        )
        return code.fingerprint("jobs.registry:use").value

    assert (with_value(1) != with_value(2)) is counts


def test_a_new_file_or_an_edit_of_the_same_length_is_seen(code: Code) -> None:
    before = code.fingerprint("plain.steps:step")
    code.write("plain/more.py", "ready = 2\n")
    assert code.fingerprint("plain.steps:step") != before


def test_relative_imports_and_packages_lead_to_their_modules(code: Code) -> None:
    code.write("pack/__init__.py", "from .inner.deep import value\n")
    code.write("pack/inner/__init__.py", "")
    code.write("pack/inner/deep.py", "from ..side import value\nfrom .. import side\n")
    code.write("pack/side.py", "value = 1\n")
    code.write(
        "top.py", "import pack\nimport pack.side as aside\ndef step(ctx, source): return pack.value, aside.value\n"
    )
    before = code.fingerprint("top:step")
    assert before.files == (
        "pack/__init__.py",
        "pack/inner/__init__.py",
        "pack/inner/deep.py",
        "pack/side.py",
        "top.py",
    )
    code.write("pack/side.py", "value = 3\n")
    assert code.fingerprint("top:step").value not in (None, before.value)


def test_nothing_is_imported(code: Code) -> None:
    code.write("jobs/loud.py", "raise SystemExit\n\ndef step(ctx, source): return source\n")
    assert code.fingerprint("jobs.loud:step").value


def test_files_that_are_taken_not_to_change_are_looked_at_once(tmp_path):
    (tmp_path / "helpers.py").write_text("def clean(frame):\n    return frame\n")
    (tmp_path / "work.py").write_text("import helpers\n\ndef job(ctx, source):\n    return helpers.clean(source)\n")
    with unchanging_files():
        before = code_fingerprint("work:job", tmp_path)
        (tmp_path / "helpers.py").write_text("def clean(frame):\n    return frame.distinct()\n")
        (tmp_path / "late.py").touch()
        assert code_fingerprint("work:job", tmp_path) == before
        assert find_module("late", tmp_path) == tmp_path / "late.py"  # it was not looked for before
    assert before.files == ("helpers.py", "work.py")
    assert code_fingerprint("work:job", tmp_path) not in (before, None)
