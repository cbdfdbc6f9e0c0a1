"""An agent that is killed and started again: a `for` continues, and no notification is repeated."""

import asyncio
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from podstatus.kube.scalars.time import Time
from tests.agent.e2e.alerting_node import until
from tests.support.processes import skewed_agent
from tests.support.processes.agent_process import SECONDS, AgentProcess, agent, get_alerts, make_pod
from tests.support.processes.programs import COMMAND
from tests.support.processes.skewed_agent import set_offset
from tests.support.webhook_server import WebServer, web_server

RULES = """
rules:
- name: Slow
  expr: '"slow" in pod.labels'
  for: {wait}s
  actions: [event, {{webhook: {{url: {url}}}}}]
- name: Quick
  expr: '"quick" in pod.labels'
  annotations: {{summary: '{{{{ pod.name }}}} is quick'}}
  actions: [event, {{webhook: {{url: {url}}}}}]
- name: Away
  scope: node
  expr: node.pods > 100
"""


WAIT = 3600
"""Seconds of a `for`: they pass on the agent's clock while it is down."""


def labelled(name: str, label: str) -> dict[str, Any]:
    pod = make_pod(name)
    pod["metadata"]["labels"] = {label: ""}
    return pod


async def until_state(made: AgentProcess, rule: str, state: str) -> dict[str, Any]:
    while True:
        found = (await asyncio.to_thread(get_alerts, made)).get(rule)
        if found is not None and found["state"] == state:
            return found


def posted(hook: WebServer) -> list[str]:
    return [f"{it.json()['rule']} {it.json()['state']}" for it in hook.posts]


def is_kept_as_told(made: AgentProcess) -> bool:
    """True if both deliveries of Quick are persisted as done."""
    with closing(sqlite3.connect(made.root_dir / "alerts.db")) as database:
        rows = database.execute("SELECT kept FROM alerts").fetchall()
    kept = [json.loads(row) for (row,) in rows]
    (quick,) = (it["deliveries"] for it in kept if it["alert"]["rule"] == "Quick")
    return [delivery["progress"] for delivery in quick.values()] == ["sent", "sent"]


def events(made: AgentProcess) -> list[tuple[str, int]]:
    """The firing notifications, with their number."""
    firing = [event for event in made.cluster.events() if event["reason"] == "AlertFiring"]
    return sorted((event["message"], event["count"]) for event in firing)


@pytest.mark.slow
async def test_a_killed_agent_goes_on_where_it_was(tmp_path: Path) -> None:
    async with web_server() as hook, asyncio.timeout(2 * SECONDS):
        file = tmp_path / "rules.yaml"
        file.write_text(RULES.format(url=hook.url, wait=WAIT))
        options = ("--alert-rules", str(file), "--no-samples")
        with agent(tmp_path / "agent", *options) as made:
            offset = tmp_path / "offset"
            set_offset(offset, 0)
            made.words[: len(COMMAND)] = [sys.executable, skewed_agent.__file__, str(offset)]
            await asyncio.to_thread(made.start_ready)
            made.cluster.create(labelled("s", "slow"), labelled("q", "quick"))
            slow = await until_state(made, "Slow", "pending")
            await until_state(made, "Quick", "firing")
            await until(lambda: posted(hook) == ["Quick firing"])
            await until(lambda: is_kept_as_told(made))
            made.kill()
            set_offset(offset, WAIT)
            await asyncio.to_thread(made.start_ready)
            # It would be pending for another hour if it had started over.
            fired = await until_state(made, "Slow", "firing")
            assert (fired["id"], fired["activeAt"]) == (slow["id"], slow["activeAt"])
            waited = Time.parse(fired["firedAt"]) - Time.parse(slow["activeAt"])
            assert waited >= WAIT * 1e9
            await until(lambda: len(hook.posts) >= 2)
            await asyncio.to_thread(made.cluster.delete, "q")
            await until_state(made, "Quick", "resolved")
            await until(lambda: len(hook.posts) >= 3)
            await asyncio.sleep(1.0)
            assert posted(hook) == ["Quick firing", "Slow firing", "Quick resolved"]
            ids = [post.json()["id"] for post in hook.posts]
            assert ids[0] == ids[2]
            once = [("Quick: q is quick", 1), ("Slow: pod default/s (warning)", 1)]
            await until(lambda: events(made) == once, lambda: events(made))
