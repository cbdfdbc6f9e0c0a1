"""`podstatus drain` against a fake agent."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from podstatus.agent.compose.drain_progress import describe_remaining
from podstatus.cli.register_commands import app
from tests.cli.fake_node import fake_node

DRAINED = (
    "node n1 is drained: it is not Ready and rejects pods until the agent is restarted or the "
    "drain is cancelled: podstatus drain --cancel --root-dir {}\n"
)


def drain(root_dir: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["drain", "--root-dir", str(root_dir), *words])


def test_it_says_what_is_waited_for(tmp_path: Path) -> None:
    first = {"state": "draining", "ending": 3, "priority": 0, "seconds": 20, "left": ["ns/a"]}
    last = {"state": "draining", "ending": 1, "priority": 7, "seconds": 10, "left": ["ns/b"]}
    between = {"state": "draining", "left": ["ns/b"]}
    with fake_node(tmp_path) as node:
        node.progress = [between, between, first, first, between, first, last, {"state": "drained"}]
        result = drain(tmp_path)
    assert result.output == (
        "draining node n1\n"
        "terminating 3 pods with priority 0; at most 20 s\n"
        "terminating 1 pod with priority 7; at most 10 s\n" + DRAINED.format(tmp_path)
    )
    assert result.exit_code == 0
    assert node.asked[:2] == ["POST /drain", "/drain"]


def test_a_timeout_lists_the_remaining_pods(tmp_path: Path) -> None:
    with fake_node(tmp_path) as node:
        node.progress = [{"state": "draining", "left": ["ns/a", "ns/b"]}]
        result = drain(tmp_path, "--timeout", "1ms")
    assert result.exit_code == 1
    assert (
        "node n1 is not drained within 0.001 s: 2 pods left: ns/a, ns/b; the drain" in result.stderr
    )


def test_a_cancelled_drain_is_an_error(tmp_path: Path) -> None:
    with fake_node(tmp_path) as node:
        node.progress = [{"state": "draining"}, {"state": "off"}]
        result = drain(tmp_path)
    assert result.exit_code == 1
    assert "the drain was cancelled, or the agent was restarted" in result.stderr


def test_it_is_cancelled(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"left": ["ns/a"]}, "1 pod still running"),
        ({"left": ["ns/a", "ns/b"], "ending": 1}, "2 pods still running, 1 pod still terminating"),
        ({"ending": 2}, "2 pods still terminating"),
        ({}, "all pods had terminated"),
    ]
    for after, message in cases:
        with fake_node(tmp_path) as node:
            node.progress = [{"state": "draining"}, {"state": "off", **after}]
            result = drain(tmp_path, "--cancel")
        assert (result.exit_code, node.asked) == (0, ["/drain", "DELETE /drain"])
        assert result.output == f"node n1 accepts pods again; {message}\n"


def test_what_was_never_begun_is_not_cancelled(tmp_path: Path) -> None:
    with fake_node(tmp_path) as node:
        node.progress = [{"state": "off", "left": ["ns/came-later"]}]
        result = drain(tmp_path, "--cancel")
    assert (result.exit_code, node.asked) == (0, ["/drain"])
    assert result.output == "node n1 accepts pods; no drain was in progress\n"


def test_without_an_agent_there_is_nothing_to_drain(tmp_path: Path) -> None:
    result = drain(tmp_path)
    assert result.exit_code == 1
    assert str(tmp_path) in result.stderr


@pytest.mark.parametrize("timeout", ["5", "-1s", "soon"])
def test_an_invalid_timeout_is_reported(tmp_path: Path, timeout: str) -> None:
    result = drain(tmp_path, f"--timeout={timeout}")
    assert result.exit_code == 2
    assert "--timeout" in result.stderr


def test_not_all_of_many_are_named() -> None:
    names = tuple(f"ns/p{index}" for index in range(7))
    assert describe_remaining(names) == "7 pods left: ns/p0, ns/p1, ns/p2, ns/p3, ns/p4 and 2 more"
