"""A pod that crash-loops, then recovers: its timeline has every transition, in order, to the
millisecond, from the API as on a terminal."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from podstatus.kube.scalars.time import Time
from tests.support.processes.agent_process import (
    AgentProcess,
    Cluster,
    Document,
    agent_on,
    make_pod,
    until,
)
from tests.support.processes.api_servers import NODES, Server
from tests.support.processes.on_terminal import on_terminal
from tests.support.web.transition_text import after_text, before_text

pytestmark = pytest.mark.slow

NODE = NODES[19]
SCRIPT = "run=3s, exit=3; run=3s, exit=4; run=3s, exit=5; run=forever"
"""Long enough to be seen running, also by an agent that seldom gets a processor."""
ENDS = ["terminated Error 3", "terminated Error 4", "terminated Error 5"]
WAITS = "waiting CrashLoopBackOff"
PARTS = ("container", "restart", "readiness", "phase", "condition")
LATE_SECONDS = 15
"""It is one at most, but for a machine that has other things to do."""
_SECOND = 1_000_000_000


class Scene(msgspec.Struct):
    """An agent on one of the servers, with a pod that crashed and has recovered."""

    agent: AgentProcess
    cluster: Cluster

    def moments(self) -> list[Document]:
        """What the API of the agent has."""
        told = self.agent.ask(f"/v1/pods/{self.cluster.namespace}/flaky/timeline")
        return list(told["transitions"])

    def has_recovered(self) -> bool:
        entries = self.moments()
        return (
            of(entries, "restart")[-1:] == ["3"] and of(entries, "condition", "Ready")[-1] == "True"
        )

    def terminal(self, *words: str) -> list[str]:
        """The lines of the command on a terminal of 100 columns, without their colours."""
        where = ("-n", self.cluster.namespace, "--root-dir", str(self.agent.root_dir))
        wide = {"COLUMNS": "100", "TERM": "xterm"}
        code, got = on_terminal("timeline", "flaky", *where, *words, environment=wide)
        assert code == 0, got
        return re.sub(r"\x1b\[[0-9;]*m", "", got.decode()).splitlines()


@pytest.fixture
def scene(each_server: Server, tmp_path: Path) -> Iterator[Scene]:
    options = ("--max-container-restart-period", "1s")
    with agent_on(each_server, tmp_path, NODE, *options) as (started, cluster):
        scene = Scene(started, cluster)
        cluster.create(make_pod("flaky", SCRIPT, NODE))
        until(lambda: scene.has_recovered() or None, started.log)
        yield scene


def of(moments: list[Document], kind: str, subject: str | None = None) -> list[str]:
    """What each of these moments led to."""
    found = [m for m in moments if m["kind"] == kind and subject in (None, m.get("subject", ""))]
    return list(map(after_text, found))


def test_the_timeline_of_a_crash_loop_has_every_transition(scene: Scene) -> None:
    moments = scene.moments()
    see_that_nothing_is_missing(moments)
    see_that_times_are_right(moments, scene.cluster)
    see_the_list(moments, scene.terminal("--list"))
    see_the_drawing(moments, scene.terminal())


def see_that_nothing_is_missing(moments: list[Document]) -> None:
    """Each part goes on where it was, and goes through all that the script makes of it."""
    states = of(moments, "container", "app")
    assert states[:2] == ["waiting ContainerCreating", "running"]
    lived = [state for state in states[1:] if state != WAITS]
    assert lived == ["running", ENDS[0], "running", ENDS[1], "running", ENDS[2], "running"]
    assert WAITS in states
    assert of(moments, "restart", "app") == ["1", "2", "3"]
    assert of(moments, "phase") == ["Pending", "Running"]
    for kind, subject in [
        ("condition", "Ready"),
        ("condition", "ContainersReady"),
        ("readiness", "app"),
    ]:
        assert of(moments, kind, subject)[-7:] == [*["True", "False"] * 3, "True"], subject
    for part in {(m["kind"], m.get("subject", "")) for m in moments if m["kind"] in PARTS}:
        changes = [m for m in moments if (m["kind"], m.get("subject", "")) == part]
        assert all(after_text(a) == before_text(b) for a, b in pairwise(changes)), part
    events = [m["reason"] for m in moments if m["kind"] == "event"]
    assert events.count("Started") == 4
    assert "BackOff" in events


def see_that_times_are_right(moments: list[Document], cluster: Cluster) -> None:
    """In order, to the millisecond, and soon after what happened."""
    assert [m["id"] for m in moments] == sorted({m["id"] for m in moments})
    times = [m["at"] for m in moments]
    assert times == sorted(times)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", time) for time in times)
    pod = cluster.pod("flaky")
    assert pod is not None
    finished = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["finishedAt"]
    (end,) = [m["at"] for m in moments if after_text(m) == ENDS[2]]
    late = (Time.parse(end).unix_nanos() - Time.parse(finished).unix_nanos()) / _SECOND
    assert 0 <= late < LATE_SECONDS, (end, finished)


def see_the_list(moments: list[Document], lines: list[str]) -> None:
    """A line for each moment of the API, in the same order, with the same time."""
    assert len(lines) == len(moments)
    for line, moment in zip(lines, moments, strict=True):
        assert line.startswith(f"{moment['at'][11:23]}   {moment['kind']}"), line
        assert moment.get("subject", "") in line
        assert after_text(moment) in line


def see_the_drawing(moments: list[Document], lines: list[str]) -> None:
    """It says how the pod is, draws each part, and tells below what happened, all of it."""
    begin, end = r"\S+/flaky is crashing\. Container app exited ", r": Error 5, 3 restarts; it is.*"
    assert re.fullmatch(begin + r"(\d+ min )?\d+ s ago" + end, lines[0])
    assert all(len(line) <= 100 for line in lines)
    rows = {line.split()[0]: line for line in lines if line.strip()}
    assert "█ Running █" in rows["phase"]
    assert rows["app"].count("▓") >= 3
    assert [mark.strip() for mark in rows["restarts"].split("↻")[1:]] == ["1", "2", "3"]
    below = " ".join(line[15:] for line in lines if re.match(r"\d\d:\d\d|  ", line))
    for end in ENDS:
        assert f"app {end.removeprefix('terminated ')}, not ready; Ready False" in below
    for number in "123":
        assert f"app restart {number}, running, ready; Ready True" in below
    at = [line[:12] for line in lines if re.match(r"\d\d:\d\d:\d\d\.\d{3}   ", line)]
    assert at == sorted(at)
    assert set(at) <= {moment["at"][11:23] for moment in moments}
