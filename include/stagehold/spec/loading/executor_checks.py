"""What `executor_config` of `airflow:` may say, and how Airflow takes it. A pod is checked wholly where the package
`kubernetes` is, which Airflow's provider for Kubernetes brings; elsewhere only what can be seen without it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

from pydantic import JsonValue

from stagehold.spec.form import show, suggest
from stagehold.spec.yaml import FieldPath, Problem

POD, TEMPLATE = "pod_override", "pod_template_file"
WITHOUT_POD = "KubernetesExecutor"  # Airflow took it before, and now has the task fail
OF_A_POD = ("apiVersion", "kind", "metadata", "spec")
AS_IN_A_MANIFEST = f"a mapping of {', '.join(OF_A_POD)}, as in a manifest of Kubernetes"
COMPUTES = "base"  # Airflow's own name of it
_MANY = re.compile(r"[Ll]ist\[(.+)\]|[Dd]ict[(\[]str, (.+)[)\]]")
_PLAIN: Mapping[str, tuple[Any, str]] = {
    "bool": (bool, "true or false"),
    "int": (int, "a whole number"),
    "str": (str | int | float, "a text"),
}


def check_executor_config(given: Mapping[str, JsonValue], path: FieldPath) -> Iterator[Problem]:
    """Other executors take other fields, which nobody here knows."""
    if WITHOUT_POD in given:
        yield Problem((*path, WITHOUT_POD), show(given[WITHOUT_POD]), f"`{POD}` instead: {AS_IN_A_MANIFEST}")
    if not isinstance(given.get(TEMPLATE, ""), str):
        yield Problem((*path, TEMPLATE), show(given[TEMPLATE]), "the path of a file, as Airflow's scheduler sees it")
    if POD in given:
        found = list(_pod_problems(given[POD], (*path, POD)))
        yield from found or _refused(given[POD], (*path, POD))


def knows_pods() -> bool:
    return find_spec("kubernetes") is not None


def pod_of(given: Any) -> Any:
    """The object that Airflow wants in place of a mapping. What a pod says of no container is for Airflow's own.

    :raises Exception: of the package's own kinds: a field that Kubernetes needs is not there, or something else is.
    """
    api = import_module("kubernetes.client")
    spec = {"spec": {"containers": []} | given["spec"]} if "spec" in given else {}
    # As Airflow does when it reads a DAG: with a configuration of its own, since the process's may not be pickled.
    client = api.ApiClient(configuration=api.Configuration())
    return client.deserialize(SimpleNamespace(data=json.dumps({**given, **spec})), "V1Pod")


def _pod_problems(pod: JsonValue, path: FieldPath) -> Iterator[Problem]:
    if not isinstance(pod, Mapping):
        yield Problem(path, show(pod), AS_IN_A_MANIFEST)
        return
    for name in pod:
        if name not in OF_A_POD:
            yield Problem((*path, name), show(pod[name]), suggest(name, OF_A_POD))
    for name in ("metadata", "spec"):
        if not isinstance(pod.get(name, {}), Mapping):
            yield Problem((*path, name), show(pod[name]), "a mapping of fields, as in a manifest of Kubernetes")
    spec = pod.get("spec")
    yield from _container_problems(spec, (*path, "spec")) if isinstance(spec, Mapping) else ()
    if knows_pods():
        known = {name: pod[name] for name in OF_A_POD if name in pod}
        yield from _unknown(known, "V1Pod", path)


def _container_problems(spec: Mapping[str, JsonValue], path: FieldPath) -> Iterator[Problem]:
    """Airflow lays containers over its own one by one, in their order."""
    containers = spec.get("containers", [])
    if not isinstance(containers, list):
        yield Problem((*path, "containers"), show(containers), "a list of containers")
    elif containers:
        first = containers[0]
        name = first.get("name") if isinstance(first, Mapping) else first
        if name != COMPUTES:
            allowed = f"{COMPUTES}, which Airflow calls the container of the task; others may follow"
            yield Problem((*path, "containers", "0", "name"), show(name), allowed)


def _unknown(given: Any, kind: str, path: FieldPath) -> Iterator[Problem]:
    """Fields that Kubernetes does not have, which its package drops without a word; ``kind`` is how that names it."""
    model = getattr(import_module("kubernetes.client.models"), kind, None)
    many = _MANY.fullmatch(kind)
    plain, allowed = _PLAIN.get(kind, (object, ""))
    if given is None:
        return
    if many and many[1]:
        yield from _unknown_items(given, many[1], path)
    elif many:
        yield from _unknown_in(given, lambda _: many[2], path, "a mapping")
    elif model is not None:
        kinds = {theirs: model.openapi_types[ours] for ours, theirs in model.attribute_map.items()}
        yield from _unknown_in(given, kinds.get, path, f"a mapping of {', '.join(kinds)}", tuple(kinds))
    elif not isinstance(given, plain):
        yield Problem(path, show(given), allowed)


def _unknown_items(given: Any, kind: str, path: FieldPath) -> Iterator[Problem]:
    if not isinstance(given, list):
        yield Problem(path, show(given), "a list")
        return
    for place, value in enumerate(given):
        yield from _unknown(value, kind, (*path, str(place)))


def _unknown_in(
    given: Any, kind_of: Callable[[str], str | None], path: FieldPath, allowed: str, fields: tuple[str, ...] = ()
) -> Iterator[Problem]:
    if not isinstance(given, Mapping):
        yield Problem(path, show(given), allowed)
        return
    for name, value in given.items():
        if kind := kind_of(name):
            yield from _unknown(value, kind, (*path, name))
        else:
            yield Problem((*path, name), show(value), suggest(name, fields))


def _refused(pod: Any, path: FieldPath) -> Iterator[Problem]:
    """What only shows when the object is made, such as a field that is needed."""
    if not knows_pods():
        return
    try:
        pod_of(pod)
    except (ValueError, TypeError, import_module("kubernetes.client").ApiException) as error:
        says = " ".join(str(error).split())
        yield Problem(path, "a mapping", f"a pod that Kubernetes takes, which says of this one: {says}")
