"""Shell completion of types and pod names."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from podstatus.cli.register_commands import app
from tests.cli.fake_node import FakeNode, fake_node


@pytest.fixture
def node(tmp_path: Path) -> Iterator[FakeNode]:
    with fake_node(tmp_path) as node:
        node.pods = [
            {"metadata": {"name": name, "namespace": namespace}}
            for name, namespace in [
                ("web-1", "default"),
                ("web-0", "default"),
                ("db", "default"),
                ("web-2", "other"),
                ("web-$(reboot)", "default"),
            ]
        ]
        node.pods[2]["spec"] = {"containers": [{"name": "app"}, {"name": "side"}]}
        node.responses["/v1/nodes"] = {"nodes": [{"name": "n1"}]}
        yield node


def offered(root_dir: Path, *words: str) -> list[str]:
    typed = ["podstatus", *words]
    environment = {
        "PODSTATUS_ROOT_DIR": str(root_dir),
        "_PODSTATUS_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(typed),
        "COMP_CWORD": str(len(typed) - 1),
    }
    done = CliRunner().invoke(app, [], prog_name="podstatus", env=environment)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("apply", "zz"), []),
        (("get", "pod", "web-0", "w"), ["web-1"]),
        (("time",), ["timeline"]),
        (("get", "p"), ["pods"]),
        (("timeline", "web"), ["web-0", "web-1"]),
        (("timeline", "node/n"), ["node/n1"]),
        (("timeline", "pod/n"), []),
        (("logs", "-n", "other", "w"), ["web-2"]),
        (("describe", "pod", "d"), ["db"]),
        (("get", "pods", "web"), ["web-0", "web-1"]),
        (("get", "nodes", "n"), ["n1"]),
        (("get", "events", "web"), []),
        (("describe", "n"), ["nodes"]),
        (("logs", "db", "-c", "s"), ["side"]),
        (("exec", "d"), ["db"]),
        (("exec", "db", "-c", "a"), ["app"]),
        (("delete", "po"), ["pod"]),
        (("delete", "pod", "web-0", "web"), ["web-1"]),
        (("delete", "pod", "-n", "other", "w"), ["web-2"]),
        (("st",), ["status", "stop"]),
    ],
)
def test_what_is_there_is_offered(tmp_path: Path, words: tuple[str, ...], names: list[str]) -> None:
    assert offered(tmp_path, *words) == names


def test_without_an_agent_nothing_is_offered_and_nothing_said(tmp_path: Path) -> None:
    assert offered(tmp_path, "timeline", "w") == []
