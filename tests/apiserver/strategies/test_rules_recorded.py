"""The strategies compared with recorded exchanges with kube-apiserver v1.36.4, by object."""

import gzip
import importlib
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.apiserver.strategies.tiny_server import TinyServer

# The judge is an untyped script.
JUDGE: Any = importlib.import_module("tests.conformance.http_check")
RECORDED = Path(__file__).parents[2] / "conformance" / "http.jsonl.gz"
RECORDS = [
    msgspec.json.decode(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()
]
FAMILIES = (
    "lifecycle",
    "patchshapes",
    "badpatch",
    "crud",
    "delete",
    "unscheduled",
    "transitions",
    "node",
    "binding",
)
NAMESPACE = "hc-7-123"
PLAYED = [record for record in RECORDS if record["name"].split("-")[2] in FAMILIES]


class Player:
    """Replays the steps of a scenario that concern single objects."""

    def __init__(self) -> None:
        self.server = TinyServer()
        self.seen: dict[str, dict[str, str]] = {}
        self.compared = 0

    def play(self, step: dict[str, Any], expected: dict[str, Any]) -> str | None:
        """Return the first difference from the recording."""
        answer = self._answer(step)
        if answer is None:
            return None
        code, body = answer
        self._note(body)
        self.compared += 1
        got = JUDGE.masked({"code": code, "body": JUDGE.project(body, code, NAMESPACE)})
        difference: str | None = JUDGE.first_difference(expected, got)
        return difference

    def _answer(self, step: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if "Table" in step.get("accept", ""):
            return None
        body = msgspec.json.decode(self._fill(msgspec.json.encode(step.get("body")).decode()))
        path, _, query = self._fill(step["path"]).partition("?")
        if query.startswith("gracePeriodSeconds="):
            body = {"gracePeriodSeconds": int(query.partition("=")[2])} | (body or {})
        kind = step.get("contentType", "application/json")
        return self.server.answer(step["method"], path, body, kind)

    def _fill(self, text: str) -> str:
        text = text.replace("{ns}", NAMESPACE)
        return re.sub(
            r"\{(uid|rv):([^}]+)\}",
            lambda match: self.seen.get(match[2], {}).get(match[1], "none"),
            text,
        )

    def _note(self, document: dict[str, Any]) -> None:
        meta = document.get("metadata") or {}
        if meta.get("uid"):
            key = f"{document.get('kind')}/{meta['name']}"
            self.seen[key] = {"uid": meta["uid"], "rv": meta["resourceVersion"]}


def steps_of(record: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the steps up to the first write that this server does not support."""
    steps = []
    for step, expected in zip(record["steps"], record["expected"], strict=True):
        patches = "json-patch" in step.get("contentType", "") and expected["code"] < 400
        empties = step.get("method") == "DELETE" and step["path"].endswith("/pods")
        if "watch" in step or patches or empties:
            break
        steps.append((step, expected))
    return steps


@pytest.mark.parametrize("record", PLAYED, ids=lambda record: record["name"])
def test_objects_are_answered_as_recorded(record: dict[str, Any]) -> None:
    player = Player()
    differences = []
    for number, (step, expected) in enumerate(steps_of(record)):
        difference = player.play(step, expected)
        if difference:
            differences.append(f"step {number} {step['method']} {step['path']}: {difference}")
    assert not differences


def test_most_of_what_was_recorded_is_compared() -> None:
    compared = 0
    for record in PLAYED:
        player = Player()
        for step, expected in steps_of(record):
            player.play(step, expected)
        compared += player.compared
    assert compared > 0.8 * sum(len(record["steps"]) for record in PLAYED)
