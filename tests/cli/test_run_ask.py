"""All commands against a whole agent: a crash loop that recovers, and an outage."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from podstatus.cli.register_commands import app
from tests.support.processes.agent_process import (
    ENVIRONMENT,
    NODE,
    SECONDS,
    AgentProcess,
    agent,
    container,
    is_ready,
    make_pod,
    until,
)
from tests.support.processes.programs import COMMAND
from tests.support.web.transition_text import after_text, before_text

pytestmark = pytest.mark.slow

SCRIPT = "run=3s, exit=3; run=3s, exit=3; run=forever"
"""Long enough to be seen running, also by an agent that seldom gets a processor."""


def ask(running: AgentProcess, *words: str) -> Result:
    result = CliRunner().invoke(app, [*words, "--root-dir", str(running.root_dir)])
    assert result.exit_code == 0, result.stderr
    return result


@contextmanager
def watching(running: AgentProcess, folder: Path) -> Iterator[Path]:
    """`podstatus watch -o json`, and the file it writes to."""
    output = folder / "watch.jsonl"
    words = [*COMMAND, "watch", "-o", "json", "--root-dir", str(running.root_dir)]
    with output.open("wb") as file:
        process = subprocess.Popen(words, stdout=file, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    try:
        yield output
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait(SECONDS)


def changes(output: Path) -> list[dict[str, Any]]:
    lines = output.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


@pytest.mark.slow
def test_a_recovered_crash_loop_is_shown_completely(tmp_path: Path) -> None:
    with agent(tmp_path / "node") as running:
        cluster = running.start_ready()
        with watching(running, tmp_path) as output:
            cluster.create(make_pod("flaky", SCRIPT, NODE))
            cluster.wait_for("flaky", lambda p: is_ready(p) and container(p)["restartCount"] == 2)
            until(lambda: len(states(running)) == 7, lambda: states(running))
            check_timeline(running)
            check_outage(running)
            running.stop()
            running.start_ready()
            cluster = running.cluster
            cluster.delete("flaky")
            cluster.wait_gone("flaky")
            until(
                lambda: changes(output)[-1].get("deleted", {}).get("name") == "flaky",
                output.read_text,
            )
            words = [c["pod"]["health"]["state"] for c in changes(output) if "pod" in c]
            assert {"healthy", "crashing"} <= set(words)


def states(running: AgentProcess) -> list[str]:
    moments = json.loads(ask(running, "timeline", "flaky", "-o", "json").stdout)["transitions"]
    return [after_text(moment) for moment in moments if moment["kind"] == "container"]


def check_timeline(running: AgentProcess) -> None:
    moments = json.loads(ask(running, "timeline", "flaky", "-o", "json").stdout)["transitions"]
    assert [after_text(moment) for moment in moments if moment["kind"] == "container"] == [
        "waiting ContainerCreating",
        "running",
        "terminated Error 3",
        "running",
        "terminated Error 3",
        "waiting CrashLoopBackOff",
        "running",
    ]
    times = [moment["at"] for moment in moments]
    assert times == sorted(times)
    assert all(len(time) == len("2026-11-15T10:00:00.123Z") for time in times)
    last: dict[tuple[str, str], str] = {}
    for moment in moments:
        if moment["kind"] != "event":
            key = moment["kind"], moment.get("subject", "")
            assert before_text(moment) == last.get(key, before_text(moment)), moment
            last[key] = after_text(moment)
    listed = ask(running, "timeline", "flaky", "--list").stdout.splitlines()
    assert len(listed) == len(moments)
    drawn = ask(running, "timeline", "flaky", "--width", "120").stdout
    assert drawn.startswith("default/flaky is crashing. Container app exited ")
    assert "↻2" in drawn
    assert "! BackOff app: " in drawn


def check_outage(running: AgentProcess) -> None:
    server = running.server()
    server.suspend()
    try:
        shown = ask(running, "get", "pods", "-o", "wide")
        assert "showing the data of the agent" in shown.stderr
        assert shown.stdout.splitlines()[1].split()[-1] == "crashing"
        described = ask(running, "describe", "pod", "flaky", "--from", "agent").stdout
        assert "Health:            crashing: Container app exited " in described
        assert "BackOff" in described
        assert NODE in ask(running, "get", "node", "--from", "agent").stdout
        assert "BackOff" in ask(running, "get", "events", "--from", "agent").stdout
    finally:
        server.resume()
