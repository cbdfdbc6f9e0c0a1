"""Actions of rules: none unless the file allows them, and each one if it does."""

import asyncio
from pathlib import Path

import pytest

from podstatus.alerts.rules.action_kinds import ACTIONS, REMEDIATION_KINDS
from podstatus.alerts.service.alert_service import AlertService
from podstatus.testing.apiserver import ApiServerThread
from tests.agent.e2e.alerting_node import PODS, AlertingNode, a_pod, shown, until

BAD = '"bad" in pod.labels && pod.labels["bad"] == "yes" && pod.phase == "Running"'
RULES = f"""
rules:
- {{name: Restart, expr: '{BAD}', actions: [restartContainer]}}
- {{name: Delete, expr: '{BAD}', actions: [{{deletePod: {{gracePeriodSeconds: 1}}}}]}}
- {{name: Taint, expr: '{BAD}', actions: [{{taintNode: {{key: bad, value: v}}}}]}}
- name: TaintNode
  scope: node
  expr: node.pods >= 0
  actions: [{{taintNode: {{key: full, effect: NoExecute}}}}]
"""
NOT_DONE = "AlertActionNotDone"
WANTED = [
    f"node/node {NOT_DONE} TaintNode: taint the node with alerts.podstatus.dev/full:NoExecute",
    f"pod/web {NOT_DONE} Delete: delete the pod with a grace period of 1 s",
    f"pod/web {NOT_DONE} Restart: restart container app",
    f"pod/web {NOT_DONE} Taint: taint the node with alerts.podstatus.dev/bad=v:NoSchedule",
]


@pytest.mark.parametrize(
    ("allowed", "why"),
    [
        ("dryRun: false", "{kind} is not listed in allowActions"),
        ("allowActions: [deletePod, restartContainer, taintNode]", "dryRun is on"),
    ],
    ids=["allowActions-empty", "dry-run"],
)
async def test_no_rule_can_change_anything(
    tmp_path: Path, server: ApiServerThread, allowed: str, why: str
) -> None:
    """Every action that changes something is tried, on the API server's objects and the runtime."""
    assert all(f"{kind}" in RULES for kind in REMEDIATION_KINDS)
    node = AlertingNode(tmp_path, server)
    kinds = ["taintNode", "deletePod", "restartContainer", "taintNode"]
    wanted = [
        f"{action}: not done, {why.format(kind=kind)}"
        for action, kind in zip(WANTED, kinds, strict=True)
    ]

    async with node.running(f"{allowed}\n{RULES}") as alerts:
        await node.create("web", bad="no")
        await until(lambda: "TaintNode node firing" in shown(alerts), lambda: shown(alerts))
        await until(lambda: _runs(node, "web"))
        pod, before = await node.pod("web"), await node.containers()
        taints = await node.taints()
        assert pod is not None
        await node.label("web", bad="yes")
        await until(lambda: _told(node, wanted), lambda: shown(alerts))
        # What could be done would be done by now: all receivers have been at it.
        await asyncio.sleep(1.0)
        after = await node.pod("web")
        assert after is not None
        assert after["metadata"]["uid"] == pod["metadata"]["uid"]
        assert "deletionTimestamp" not in after["metadata"]
        assert after["status"]["containerStatuses"][0]["restartCount"] == 0
        assert await node.containers() == before
        assert await node.taints() == taints
        assert await node.event_messages(NOT_DONE) == wanted
        assert await node.event_messages("AlertAction", "Killing") == []
        # Also when the alerts are over.
        await node.label("web", bad="no")
        await until(lambda: "Taint web resolved" in shown(alerts), lambda: shown(alerts))
        await asyncio.sleep(0.3)
        assert await node.taints() == taints


async def _runs(node: AlertingNode, name: str) -> bool:
    pod = await node.pod(name)
    statuses = (pod or {}).get("status", {}).get("containerStatuses") or [{}]
    return bool(statuses[0].get("ready"))


async def _told(node: AlertingNode, wanted: list[str]) -> bool:
    return await node.event_messages(NOT_DONE) == wanted


def allowing(kind: str, action: str) -> str:
    return f"""
allowActions: [{kind}]
dryRun: false
rules:
- {{name: Bad, expr: '{BAD}', actions: [event, {action}]}}
"""


async def test_a_container_is_restarted(tmp_path: Path, server: ApiServerThread) -> None:
    node = AlertingNode(tmp_path, server)

    async def restarted() -> bool:
        pod = await node.pod("web")
        return bool(pod and pod["status"]["containerStatuses"][0]["restartCount"] == 1)

    async def has_all_events() -> bool:
        return await node.event_messages("AlertAction", "AlertFiring", "Killing") == [
            "pod/web AlertAction Bad: restart container app: done",
            "pod/web AlertFiring Bad: pod default/web (warning)",
            "pod/web Killing Container app restart requested, will be restarted",
        ]

    async with node.running(allowing("restartContainer", "restartContainer")) as alerts:
        await node.create("web", bad="no")
        await until(lambda: _runs(node, "web"))
        await node.label("web", bad="yes")
        await until(restarted, lambda: shown(alerts))
        await until(lambda: _runs(node, "web"))
        await until(has_all_events, lambda: shown(alerts))
        await asyncio.sleep(0.5)
        assert await restarted()
        assert await has_all_events()


async def test_a_pod_is_deleted(tmp_path: Path, server: ApiServerThread) -> None:
    node = AlertingNode(tmp_path, server)

    async def gone() -> bool:
        return await node.pod("web") is None

    async def is_recorded() -> bool:
        done = "pod/web AlertAction Bad: delete the pod: done"
        return await node.event_messages("AlertAction") == [done]

    async with node.running(allowing("deletePod", "deletePod")) as alerts:
        await node.ask("POST", PODS, a_pod("web", bad="yes"))
        await node.create("well")
        await until(gone, lambda: shown(alerts))
        await until(lambda: shown(alerts) == ["Bad web resolved"], lambda: shown(alerts))
        assert await node.pod("well") is not None
        await until(is_recorded)
        # A pod that is recreated at once is kept: the action has been done.
        await node.ask("POST", PODS, a_pod("web", bad="yes"))
        not_done = f"pod/web {NOT_DONE} Bad: delete the pod: not done, the rate limit is exceeded"
        await until(lambda: _told(node, [not_done]), lambda: shown(alerts))
        again = await node.pod("web")
        assert again is not None
        assert "deletionTimestamp" not in again["metadata"]


async def test_a_taint_comes_and_goes_and_those_of_others_stay(
    tmp_path: Path, server: ApiServerThread
) -> None:
    node = AlertingNode(tmp_path, server)
    rules = allowing("taintNode", "{taintNode: {key: bad}}")
    other = {"key": "theirs", "effect": "NoSchedule"}

    async def tainted(*keys: str) -> bool:
        return sorted(it["key"] for it in await node.taints()) == sorted(keys)

    async with node.running(rules) as alerts:
        await node.create("web", bad="no")
        await node.create("db", bad="no")
        await until(lambda: _runs(node, "web"))
        await until(lambda: _runs(node, "db"))
        await node.ask("PATCH", "/api/v1/nodes/node", {"spec": {"taints": [other]}})
        await node.label("web", bad="yes")
        await until(lambda: tainted("theirs", "alerts.podstatus.dev/bad"), lambda: shown(alerts))
        await node.label("db", bad="yes")
        await until(lambda: shown(alerts) == ["Bad db firing", "Bad web firing"])
    # It goes with the last alert that wants it, also after a restart.
    async with node.running(rules) as alerts:
        await node.label("web", bad="no")
        await until(lambda: "Bad web resolved" in shown(alerts), lambda: shown(alerts))
        # What could be taken away would be by now.
        await asyncio.sleep(0.5)
        assert await tainted("theirs", "alerts.podstatus.dev/bad")
        await node.label("db", bad="no")
        await until(lambda: tainted("theirs"), lambda: shown(alerts))
        ours = {"key": "alerts.podstatus.dev/bad", "effect": "NoSchedule"}
        await node.ask("PATCH", "/api/v1/nodes/node", {"spec": {"taints": [other, ours]}})
    # Without rules, nothing of them remains on the Node.
    async with node.running(None):
        await until(lambda: tainted("theirs"))


async def test_a_condition_of_the_node_is_there_while_the_alert_fires(
    tmp_path: Path, server: ApiServerThread
) -> None:
    node = AlertingNode(tmp_path, server)
    rules = f"""
rules:
- name: Bad
  expr: '{BAD}'
  annotations: {{summary: '{{{{ pod.name }}}} is bad'}}
  actions: [{{nodeCondition: {{type: PodBad}}}}]
- {{name: Short, expr: '{BAD}', actions: [{{nodeCondition: {{type: Short, ttl: 1s}}}}]}}
"""
    bad, short = "alerts.podstatus.dev/PodBad", "alerts.podstatus.dev/Short"

    async def stated(*types: str) -> bool:
        return {it for it in await node.conditions() if "/" in it} == set(types)

    async with node.running(rules) as alerts:
        await node.create("web", bad="yes")
        await until(lambda: stated(bad, short), lambda: shown(alerts))
        shown_as = (await node.conditions())[bad]
        assert (shown_as["status"], shown_as["reason"]) == ("True", "Bad")
        assert shown_as["message"] == "web is bad"
        # The next status of the node is without what was to be shown for a second only.
        await until(lambda: stated(bad), lambda: shown(alerts))
        assert "Ready" in await node.conditions()
    async with node.running(rules) as alerts:
        await until(lambda: "Bad web firing" in shown(alerts), lambda: shown(alerts))
        assert (await node.conditions())[bad] is not None
        await node.label("web", bad="no")
        await until(stated, lambda: shown(alerts))
        await node.label("web", bad="yes")
        await until(lambda: stated(bad, short), lambda: shown(alerts))
    # Without rules, nothing of them remains on the Node.
    async with node.running(None):
        await until(stated)


async def test_every_kind_of_action_has_a_deed(tmp_path: Path, server: ApiServerThread) -> None:
    node = AlertingNode(tmp_path, server)

    async with node.running("rules: []") as alerts:
        assert isinstance(alerts, AlertService)
        assert alerts.action_kinds == set(ACTIONS)
