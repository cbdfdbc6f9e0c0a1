"""Names of podstatus on a page of the documentation, and the objects behind them."""

import re
from collections.abc import Iterator
from importlib import import_module

import pytest

import podstatus

LIBRARY = ("base", "checkpoint", "kube", "pods", "status", "testing")
NEEDS_AGENT = (
    "agent",
    "alerts",
    "apiserver",
    "cli",
    "client",
    "events",
    "node",
    "observe",
    "probes",
    "runtime",
    "sources",
    "web",
    "workers",
)


def dotted_names(text: str) -> Iterator[str]:
    """Names that begin with their package, without `podstatus.`: `pods.phase.get_phase`."""
    packages = "|".join((*LIBRARY, *NEEDS_AGENT))
    yield from re.findall(rf"`(?:podstatus\.)?((?:{packages})(?:\.\w+)+)", text)


def resolve(name: str) -> object:
    """The object behind a dotted name: modules first, then attributes.

    Raises AttributeError. Skips the test if the name needs podstatus[agent] and that is missing.
    """
    if name.split(".", maxsplit=1)[0] in NEEDS_AGENT:
        pytest.importorskip("aiohttp", reason="this package needs podstatus[agent]")
    owner: object = podstatus
    path = "podstatus"
    for part in name.split("."):
        path = f"{path}.{part}"
        try:
            owner = import_module(path)
        except ModuleNotFoundError:
            owner = _attribute(owner, part)
    return owner


def _attribute(owner: object, name: str) -> object:
    """An attribute, or the declaration of a field."""
    declared = getattr(owner, "__annotations__", {})
    return declared[name] if name in declared else getattr(owner, name)
