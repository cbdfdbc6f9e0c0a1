"""`podstatus timeline node/NAME` against a fake agent with a history."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec import structs
from typer.testing import CliRunner, Result

from podstatus.cli import node_timeline
from podstatus.cli.register_commands import app
from podstatus.kube.scalars.time import Time
from podstatus.web.v1.wire import node_load_view, transition_view
from tests.cli.crash_loop import BEGIN, SECOND
from tests.cli.fake_node import FakeNode, fake_node
from tests.cli.stopped_agent import LOAD, STORY

PATH = "/v1/nodes/n1"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNode]:
    now = Time.from_unix_nanos(BEGIN + 400 * SECOND)
    monkeypatch.setattr(node_timeline, "current_time", lambda: now)
    with fake_node(tmp_path) as node:
        node.responses[f"{PATH}/timeline"] = answer()
        node.responses[PATH] = {"node": {"name": "n1", "ready": True}}
        yield node


def answer(**more: Any) -> dict[str, Any]:
    entries = [structs.replace(entry, id=number) for number, entry in enumerate(STORY, start=1)]
    return {
        "transitions": [msgspec.to_builtins(transition_view(entry)) for entry in entries],
        "load": [msgspec.to_builtins(node_load_view(sample)) for sample in LOAD],
        "after": len(entries),
        **more,
    }


def timeline(root_dir: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["timeline", *words, "--root-dir", str(root_dir)])


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("name", ["node/n1", "nodes/n1", "no/n1", "Node/n1"])
def test_it_is_drawn_with_its_load_and_what_happened_below(tmp_path: Path, name: str) -> None:
    lines = timeline(tmp_path, name, "--width", "80").stdout.splitlines()
    assert lines[0] == "Node n1 is ready."
    first = next(number for number, line in enumerate(lines) if line.startswith("Ready "))
    rows = [line.split("  ")[0].split(" ")[0] for line in lines[first : first + 8]]
    assert rows == [
        "Ready", "MemoryPressure", "unrea..NoExecute", "agent", "cpu", "memory", "disk", "events",
    ]  # fmt: skip
    assert lines[-2].startswith("10:05:01.123   Ready True; taint node.kubernetes.io/unreachable")
    assert not any("DiskPressure False" in line for line in lines)


@pytest.mark.usefixtures("node")
def test_a_part_of_it(tmp_path: Path) -> None:
    drawn = timeline(tmp_path, "node/n1", "--since", "105s", "--width", "80").stdout
    assert drawn.splitlines()[1].startswith("2026-11-15T10:04:55.123Z to 2026-11-15T10:06:40.123Z")
    listed = timeline(tmp_path, "node/n1", "--since", "105s", "--list").stdout.splitlines()
    assert len(listed) == 5
    document = json.loads(timeline(tmp_path, "node/n1", "--since", "105s", "-o", "json").stdout)
    assert (len(document["transitions"]), len(document["load"])) == (5, 1)


@pytest.mark.usefixtures("node")
def test_other_forms_have_it_all(tmp_path: Path) -> None:
    document = json.loads(timeline(tmp_path, "node/n1", "-o", "json").stdout)
    assert len(document["transitions"]) == len(STORY)
    assert document["load"][1] == {
        "at": "2026-11-15T10:01:30.123Z", "cpu": 0.95, "memory": 0.3, "disk": 0.2, "inodes": 0.1,
    }  # fmt: skip
    assert yaml.safe_load(timeline(tmp_path, "node/n1", "-o", "yaml").stdout) == document
    assert len(timeline(tmp_path, "node/n1", "--list").stdout.splitlines()) == len(STORY)


def test_a_node_that_is_not_ready_or_gone(node: FakeNode, tmp_path: Path) -> None:
    node.responses[PATH] = {"node": {"name": "n1", "reason": "Stopped", "message": "by\x1b[2J"}}
    assert timeline(tmp_path, "node/n1").stdout.startswith(
        "Node n1 is not ready. Stopped: by^[[2J\n"
    )
    del node.responses[PATH]
    drawn = timeline(tmp_path, "node/n1", "--width", "80").stdout.splitlines()
    assert drawn[0] == "Node n1 is deleted."
    assert " to 2026-11-15T10:05:01.123Z (5 min 1 s; " in drawn[1]


def test_all_pages_are_read(node: FakeNode, tmp_path: Path) -> None:
    node.responses[f"{PATH}/timeline"] = answer(more=True)
    # The fake says the same again, and that it ends there: so there are two.
    assert len(timeline(tmp_path, "node/n1", "--list").stdout.splitlines()) == 2 * len(STORY)
    assert node.asked[-1].endswith(f"after={len(STORY)}")


@pytest.mark.usefixtures("node")
def test_a_node_that_is_not_known(tmp_path: Path) -> None:
    result = timeline(tmp_path, "node/none")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(
        "podstatus: no node 'none' on the agent of node n1, and no history of one; to see all "
    )
    spaced = timeline(tmp_path, "node", "n1", "--list")
    assert spaced.exit_code == 2
    hint = f"podstatus timeline node/n1 --list --root-dir {tmp_path}"
    assert "did you mean node/n1?" in spaced.stderr
    assert hint in spaced.stderr.replace("\n", "")
    wrong = timeline(tmp_path, "deployment/none")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "'deployment/none' is not a pod; write it as in none or pod/none" in wrong.stderr
