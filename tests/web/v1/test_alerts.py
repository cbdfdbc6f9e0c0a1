"""/v1/alerts: filters, order, and the state of rules and receivers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.web.fake_alerts import FakeAlerts, an_alert
from tests.support.web.node_server import Scene, serve

ALERTS = (
    an_alert("web", "Flapping", "resolved"),
    an_alert("web", "CrashLoop", "firing"),
    an_alert("db", "NotReady", "pending", namespace="prod"),
    an_alert("db", "CrashLoop", "firing", "critical", namespace="prod"),
    an_alert("node-1", "DiskFilling", "firing", "info", scope="node"),
)


async def ask(scene: Scene, query: str = "", *, code: int = 200) -> Any:
    scene.alerts.known = FakeAlerts(*ALERTS).known
    status, text = await scene.get(f"/v1/alerts{query}", token="")
    assert status == code, text
    return json.loads(text)


def named(answer: Any) -> list[str]:
    return [f"{it['rule']} {it['subject']['name']}" for it in answer["alerts"]]


async def test_those_that_fire_come_first_and_the_gravest_before_the_others(scene: Scene) -> None:
    answer = await ask(scene)
    assert named(answer) == [
        "CrashLoop db",
        "CrashLoop web",
        "DiskFilling node-1",
        "NotReady db",
        "Flapping web",
    ]
    assert answer["alerts"][1] == {
        "id": "CrashLoop-pod-default-web",
        "rule": "CrashLoop",
        "state": "firing",
        "severity": "warning",
        "subject": {
            "scope": "pod",
            "name": "web",
            "namespace": "default",
            "uid": "uid-web",
            "node": "node-1",
        },
        "labels": {"alertname": "CrashLoop", "severity": "warning"},
        "annotations": {"summary": "web is bad"},
        "activeAt": "2026-11-15T12:00:00.000Z",
        "firedAt": "2026-11-15T12:02:00.000Z",
    }
    assert answer["rules"][0]["name"] == "CrashLoop"
    assert answer["deliveries"][0]["delivered"] == 3
    assert answer["freshness"]["serverReachable"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?state=firing", ["CrashLoop db", "CrashLoop web", "DiskFilling node-1"]),
        ("?state=pending,resolved", ["NotReady db", "Flapping web"]),
        ("?severity=Critical&state=firing", ["CrashLoop db"]),
        ("?rule=CrashLoop&namespace=default", ["CrashLoop web"]),
        ("?namespace=none", []),
        ("?limit=1", ["CrashLoop db"]),
    ],
)
async def test_what_is_asked_for_is_answered(scene: Scene, query: str, found: list[str]) -> None:
    answer = await ask(scene, query)
    assert named(answer) == found
    assert answer["remaining"] == (4 if query == "?limit=1" else 0)


@pytest.mark.parametrize("query", ["?state=burning", "?severity=high", "?limit=0", "?label=a"])
async def test_invalid_parameters_are_rejected(scene: Scene, query: str) -> None:
    assert (await ask(scene, query, code=400))["reason"] == "BadRequest"


async def test_a_node_without_rules_says_so(tmp_path: Path) -> None:
    async with serve(tmp_path, sources={"alerts": None}) as scene:
        status, text = await scene.get("/v1/alerts")
    assert status == 404
    assert "--no-alerts" in text
