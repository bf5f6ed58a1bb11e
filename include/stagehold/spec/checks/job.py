"""Whether a stage's job exists and takes the frames that its stage gives. The job is read, never imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from stagehold.code.project import Function, functions, load_module
from stagehold.spec.form import show, suggest

SHAPE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def job_problem(job: str, frames: Sequence[str] | None, project: Path) -> tuple[str, str] | None:
    """What was given and what is allowed, or None when the job is fine.

    :param frames: names of the frames the stage passes; None while they are not known, then only the name is checked
    """
    if not SHAPE.fullmatch(job):
        return show(job), "module:function, such as jobs.tpch:orders"
    name, _, wanted = job.partition(":")
    try:
        module = load_module(name, project)
    except (SyntaxError, ValueError, OSError) as error:
        return f"{show(job)}, whose module cannot be parsed ({error})", "a module that Python can read"
    if module is None:
        return f"{show(job)}, but there is no {name.replace('.', '/')}.py", f"a module under {project}"
    known = functions(module)
    if wanted not in known:
        return show(job), f"a function defined in {name}: {suggest(wanted, tuple(known))}"
    return None if frames is None else _signature_problem(known[wanted], frames)


def _signature_problem(function: Function, frames: Sequence[str]) -> tuple[str, str] | None:
    arguments = function.args
    positional = [argument.arg for argument in arguments.posonlyargs + arguments.args]
    required = set(positional[: len(positional) - len(arguments.defaults)])
    required |= {
        argument.arg
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    }
    by_name = {argument.arg for argument in arguments.args + arguments.kwonlyargs} - set(positional[:1])
    takes = arguments.kwarg is not None or by_name >= set(frames)
    if isinstance(function, ast.FunctionDef) and positional[:1] == ["ctx"] and takes and required <= {"ctx", *frames}:
        return None
    keyword = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def"
    return f"{keyword} {function.name}({ast.unparse(arguments)})", f"def {function.name}({', '.join(['ctx', *frames])})"
