"""Pods and nodes that rules are tried on before they are asked about real ones.

One has everything, the other next to nothing: no labels, no conditions, no number but 0. What
fails of one of them would fail of many.
"""

from typing import Any

from podstatus.alerts.fact_table import CONTAINER_FACTS, FACTS, Fact
from podstatus.alerts.rule import Scope

_FULL: dict[str, Any] = {
    "string": "text",
    "bool": True,
    "int": 1,
    "double": 0.5,
    "map(string, string)": {"Ready": "True"},
}
_BARE: dict[str, Any] = {
    "string": "",
    "bool": False,
    "int": 0,
    "double": 0.0,
    "map(string, string)": {},
}


def samples(scope: Scope) -> dict[str, dict[str, Any]]:
    """The facts of some that do not exist, each with what it is like."""
    return {
        f"a {scope} that has everything": _sample(FACTS[scope], _FULL),
        f"a {scope} that has nothing yet": _sample(FACTS[scope], _BARE),
    }


def _sample(facts: tuple[Fact, ...], values: dict[str, Any]) -> dict[str, Any]:
    container = {fact.name: values[fact.kind] for fact in CONTAINER_FACTS}
    return {fact.name: values.get(fact.kind, [container]) for fact in facts}
