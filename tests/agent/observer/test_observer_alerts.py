"""Alerts of an observer, on an API server in memory."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from podstatus.agent.errors import AgentError
from podstatus.agent.observer.cluster_view import ObserverScope
from podstatus.agent.observer.observer import ClusterObserver
from podstatus.kube.scalars.time import MicroTime
from podstatus.testing.apiserver import ApiServerThread
from tests.agent.observer.observing import create, observing, until
from tests.support.data.deployment_pods import pod
from tests.support.webhook_server import WebServer, web_server

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
MERGE = "application/merge-patch+json"
TO_HOOK = """
rules:
- {{name: Waiting, expr: 'pod.phase == "Pending"', actions: [{{webhook: {{url: "{url}"}}}}]}}
- name: Down
  scope: node
  expr: '!node.ready && "Ready" in node.conditions'
  actions: [{{webhook: {{url: "{url}"}}}}]
"""


def set_ready(server: ApiServerThread, node: str, status: str) -> None:
    conditions = [{"type": "Ready", "status": status, "reason": "Test"}]
    patch = {"status": {"conditions": conditions}}
    code, answer = server.request("PATCH", f"{NODES}/{node}/status", patch, MERGE)
    assert code == 200, answer


def named(posted: dict[str, Any]) -> str:
    return f"{posted['rule']} {posted['subject']['name']} {posted['state']}"


def heard(hook: WebServer) -> list[str]:
    return sorted(named(post.json()) for post in hook.posts)


def firing(observer: ClusterObserver) -> set[str]:
    assert observer.alerts is not None
    alerts = observer.alerts.alerts().values()
    return {f"{it.rule} {it.subject.name}" for it in alerts if it.state == "firing"}


async def test_rules_are_evaluated_for_all_pods_and_nodes(
    tmp_path: Path, server: ApiServerThread
) -> None:
    pods = [create(server, PODS, pod(number, nodes=2)) for number in range(2)]
    for node, ready in (("worker-000", "True"), ("worker-001", "False")):
        create(server, NODES, {"metadata": {"name": node}})
        set_ready(server, node, ready)
    first = sorted([*(f"Waiting {name} firing" for name in pods), "Down worker-001 firing"])

    async with web_server() as hook:
        rules = TO_HOOK.format(url=hook.url)
        async with observing(tmp_path, server, rules=rules):
            await until(lambda: heard(hook) == first)
        # Another process: it neither repeats nor forgets what was sent.
        async with observing(tmp_path, server, rules=rules) as observer:
            await until(lambda: len(firing(observer)) == 3)
            server.request("DELETE", f"{PODS}/{pods[0]}", {"gracePeriodSeconds": 0})
            set_ready(server, "worker-001", "True")
            set_ready(server, "worker-000", "Unknown")
            then = [f"Waiting {pods[0]} resolved", "Down worker-001 resolved"]
            expected = sorted([*first, *then, "Down worker-000 firing"])
            await until(lambda: len(hook.posts) == len(expected))
            assert heard(hook) == expected
    by_name = {named(post.json()): post.json() for post in hook.posts}
    assert by_name[f"Waiting {pods[0]} firing"]["id"] == by_name[then[0]]["id"]


async def test_a_default_rule_notices_a_node_that_stopped_renewing_its_lease(
    tmp_path: Path, server: ApiServerThread
) -> None:
    now = MicroTime.from_unix_nanos(0)
    for node, renewed in (("alive", None), ("dead", now), ("no-lease", None)):
        create(server, NODES, {"metadata": {"name": node}})
        if renewed is not None:
            spec = {"renewTime": renewed.wire}
            create(server, LEASES, {"metadata": {"name": node}, "spec": spec})

    async with observing(tmp_path, server, rules="rules: []") as observer:
        await until(lambda: firing(observer) == {"NodeLeaseLate dead"})
        assert observer.alerts is not None
        assert {it.problem for it in observer.alerts.rules()} == {""}
        [alert] = (it for it in observer.alerts.alerts().values() if it.state == "firing")
        assert "<" not in alert.annotations["description"]


async def test_events_are_created_only_if_a_rule_requests_them(
    tmp_path: Path, server: ApiServerThread
) -> None:
    name = create(server, PODS, pod(0))
    rules = "rules:\n- {name: Waiting, expr: 'pod.phase == \"Pending\"'}"

    def events() -> list[dict[str, Any]]:
        code, answer = server.request("GET", EVENTS)
        assert code == 200, answer
        found: list[dict[str, Any]] = answer["items"]
        return [it for it in found if it["source"].get("component") == "podstatus-observer"]

    async with observing(tmp_path, server, rules=rules) as observer:
        await until(lambda: firing(observer) == {f"Waiting {name}"})
    assert events() == []
    rules = rules.replace("}", ", actions: [log, event]}").replace("Waiting", "Idle")
    async with observing(tmp_path, server, rules=rules):
        await until(events)
    [event] = events()
    assert event["involvedObject"]["name"] == name
    assert event["reason"] == "AlertFiring"


@pytest.mark.parametrize(
    ("scope", "action"),
    [
        ("pod", "deletePod"),
        ("pod", "restartContainer"),
        ("node", "taintNode: {key: bad}"),
        ("node", "nodeCondition: {type: Bad}"),
    ],
)
async def test_actions_that_change_nodes_or_pods_are_refused(
    tmp_path: Path, server: ApiServerThread, scope: str, action: str
) -> None:
    kind = action.partition(":")[0]
    rules = (
        "allowActions: [deletePod, restartContainer, taintNode]\nrules:\n"
        f"- name: Acts\n  scope: {scope}\n  expr: 'true'\n  actions: [log, {{{action}}}]\n"
    )
    rules = rules.replace(f"{{{action}}}", action) if ":" not in action else rules
    with pytest.raises(AgentError) as raised:
        async with asyncio.timeout(60), observing(tmp_path, server, rules=rules):
            pass
    assert str(raised.value).startswith(
        f"--alert-rules: rule Acts, line 6: an observer has no action {kind}, since it changes no"
    )


async def test_without_alerts_there_is_no_reader(tmp_path: Path, server: ApiServerThread) -> None:
    async with observing(tmp_path, server) as observer:
        assert observer.alerts is None


ELECTION = {
    "leader_elect": "true",
    "leader_elect_lease_duration": "60s",
    "leader_elect_retry_period": "100ms",
    "leader_elect_resource_namespace": "default",
}


async def test_of_two_observers_one_notifies_and_hands_over_when_it_stops(
    tmp_path: Path, server: ApiServerThread
) -> None:
    async with web_server() as hook, AsyncExitStack() as stack:
        rules = TO_HOOK.format(url=hook.url)
        folders = [tmp_path / "one", tmp_path / "other"]
        for folder in folders:
            folder.mkdir()
        everything = ObserverScope()
        async with observing(folders[0], server, everything, rules=rules, **ELECTION) as first:
            name = create(server, PODS, pod(0))
            await until(lambda: heard(hook) == [f"Waiting {name} firing"])
            second = await stack.enter_async_context(
                observing(folders[1], server, everything, rules=rules, **ELECTION)
            )
            await until(lambda: firing(second) == firing(first))
            other = create(server, PODS, pod(1))
            await until(lambda: len(hook.posts) == 2)
            server.request("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})
            await until(lambda: len(hook.posts) == 3)
            await until(lambda: len(firing(second)) == 1)
        await until(lambda: len(hook.posts) == 5)
    keys = [post.json()["dedupKey"] for post in hook.posts]
    before = [named(post.json()) for post in hook.posts[:3]]
    assert before == [
        f"Waiting {name} firing",
        f"Waiting {other} firing",
        f"Waiting {name} resolved",
    ]
    again = {named(post.json()): post.json()["dedupKey"] for post in hook.posts[3:]}
    assert again == {f"Waiting {other} firing": keys[1], f"Waiting {name} resolved": keys[0]}
