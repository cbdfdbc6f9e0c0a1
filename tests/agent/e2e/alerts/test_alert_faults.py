"""Faults of alerts affect nothing else of a whole agent."""

import asyncio
from pathlib import Path

import pytest

from podstatus.alerts.service.alert_service import SAMPLE_SECONDS
from podstatus.testing.apiserver import ApiServerThread
from tests.agent.e2e.alerting_node import AlertingNode, is_ready, is_running, until
from tests.agent.e2e.faults.heartbeats import ImpatientHeartbeats
from tests.support.processes.agent_process import (
    AgentProcess,
    agent,
    get_alerts,
    make_pod,
    run_command,
)
from tests.support.processes.agent_process import until as until_it_is

pytestmark = pytest.mark.slow

FAILING = """
rules:
# Valid until it is evaluated for a running pod: none of them has a sidecar.
- name: Broken
  expr: pod.phase == "Running" && pod.containers.filter(c, c.kind == "sidecar")[0].ready == false
- name: Picky
  expr: '"n" in pod.labels && int(pod.labels.n) > 3'
"""


async def test_rules_that_hang_show_in_healthz_and_the_node_stays_ready(
    tmp_path: Path, server: ApiServerThread
) -> None:
    node = AlertingNode(tmp_path, server)
    node.heartbeats = ImpatientHeartbeats("alerts", SAMPLE_SECONDS + 3)
    async with node.running("rules: []") as alerts:
        await until(lambda: is_ready(node))
        assert node.unhealthy() == {}
        alerts.evaluate_once = asyncio.Event().wait  # type: ignore[attr-defined]
        await until(node.unhealthy)
        assert set(node.unhealthy()) == {"alerts"}
        await node.create("web")
        await until(lambda: is_running(node, "web"), node.unhealthy)
        # The status of the node is made every second: it would say so by now.
        await asyncio.sleep(2.0)
        assert await is_ready(node)
        assert set(node.unhealthy()) == {"alerts"}


def test_rules_that_fail_are_shown_everywhere_and_the_others_run_on(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(FAILING)
    with agent(tmp_path / "agent", "--alert-rules", str(rules), "--no-samples") as made:
        cluster = made.start_ready()
        for name, number in (("big", "5"), ("odd", "five"), ("small", "1")):
            pod = make_pod(name)
            pod["metadata"]["labels"] = {"n": number}
            cluster.create(pod)
        cluster.wait_ready("big", "odd", "small")
        until_it_is(lambda: get_alerts(made)["Picky"]["subject"]["name"] == "big")
        until_it_is(lambda: failing(made) == {"Broken": 3, "Picky": 1}, lambda: failing(made))
        broken, picky = command_output(made)
        assert broken.startswith("podstatus: rule Broken: pod default/")
        assert broken.endswith(": index error: index=0 size=0")
        assert picky.startswith("podstatus: rule Picky: pod default/odd: ")
        assert command_output(made, "Picky") == [picky]
        metrics = made.ask_text("/metrics")
        assert 'podstatus_alert_rule_failing{rule="Broken"} 3' in metrics
        assert 'podstatus_alert_rule_failing{rule="Picky"} 1' in metrics
        assert 'podstatus_alert_rule_failing{rule="PodCrashLooping"} 0' in metrics
        assert made.health() == (200, "ok")
        # What it fails for no more, it shows no more.
        cluster.delete("odd")
        until_it_is(lambda: failing(made) == {"Broken": 2}, lambda: failing(made))


def failing(made: AgentProcess) -> dict[str, int]:
    """Of how many each rule fails, if it does."""
    rules = made.ask("/v1/alerts")["rules"]
    return {it["name"]: it["failing"] for it in rules if it["failing"]}


def command_output(made: AgentProcess, *names: str) -> list[str]:
    """What `podstatus get alerts` says below its table."""
    words = ("get", "alerts", *names, "--root-dir", str(made.root_dir))
    return run_command(*words, check=True).stderr.splitlines()
