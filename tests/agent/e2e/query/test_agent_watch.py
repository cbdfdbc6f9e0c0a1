"""A watch continues after the agent was killed and restarted."""

import ssl
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.processes.agent_process import NODE, AgentProcess, Document
from tests.support.web.sse_client import Copy, Event, Parser

SECONDS = 90

pytestmark = pytest.mark.slow


def test_a_watch_goes_on_when_the_agent_was_killed(tmp_path: Path) -> None:
    agent, copy = AgentProcess(tmp_path, "--no-samples"), Copy()
    try:
        cluster = agent.start_ready()
        cluster.create(a_pod("a"), a_pod("b"))
        cluster.wait_ready("a", "b")
        last = follow(agent, "", "", copy, lambda: ready(copy) == {"a", "b"})
        before = moments(agent, "", lambda seen: {"a", "b"} <= are_ready(seen))
        agent.kill()

        cluster = agent.start_ready()
        cluster.delete("a")
        cluster.wait_gone("a")
        follow(agent, "", last, copy, lambda: copy.resets == 1 and ready(copy) == {"b"})
        after = moments(agent, before[-1].id, lambda seen: "a" in are_finished(seen))
    finally:
        agent.kill()

    ids = [event.data["id"] for event in (*before, *after)]
    assert ids == list(range(1, len(ids) + 1)), "all of them, in order, and none twice"


def a_pod(name: str) -> Document:
    return {
        "metadata": {"name": name},
        "spec": {
            "nodeName": NODE,
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "app", "image": "web"}],
        },
    }


def ready(copy: Copy) -> set[str]:
    return {pod["name"] for pod in copy.pods.values() if pod["health"]["state"] == "healthy"}


def are_ready(seen: list[Event]) -> set[str]:
    return {
        event.data["name"]
        for event in seen
        if (event.data.get("subject"), event.data.get("after")) == ("Ready", "True")
    }


def are_finished(seen: list[Event]) -> set[str]:
    return {event.data["name"] for event in seen if event.data.get("kind") == "finished"}


def follow(
    agent: AgentProcess, query: str, last: str, copy: Copy, is_right: Callable[[], bool]
) -> str:
    """Watch until the copy is right; how far that is."""
    for event in events(agent, query, last):
        copy.take(event)
        last = event.id
        if is_right():
            return last
    raise AssertionError(copy.phases)


def moments(agent: AgentProcess, last: str, is_right: Callable[[list[Event]], bool]) -> list[Event]:
    """What happened, until it is enough."""
    seen = []
    for event in events(agent, "transitions=1", last):
        if event.name == "transition":
            seen.append(event)
            if is_right(seen):
                return seen
        else:
            assert event.name == "synced"
    raise AssertionError(seen)


def events(agent: AgentProcess, query: str, last: str) -> Iterator[Event]:
    """On loopback, without a token."""
    url = f"{agent.wait_serving()['agent']}/v1/watch?{query}"
    trusted = ssl.create_default_context(cafile=agent.root_dir / "pki" / "agent.crt")
    request = urllib.request.Request(url, headers={"Last-Event-ID": last})  # noqa: S310 - ours
    with urllib.request.urlopen(request, context=trusted, timeout=SECONDS) as answer:  # noqa: S310
        parser = Parser()
        while data := answer.read1():
            yield from parser.feed(data)
