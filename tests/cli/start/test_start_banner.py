"""What `podstatus run` and `podstatus observe` print when they are serving."""

import sys
from pathlib import Path

import pytest

from podstatus.agent.daemon.run_agent import AgentInfo
from podstatus.agent.settings.load import load_settings
from podstatus.cli.start.start_banner import node_banner, observer_banner


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a program in .venv."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [".venv/bin/podstatus", "run"])
    return tmp_path


def info(root_dir: Path, **flags: str) -> AgentInfo:
    settings = load_settings({"root_dir": str(root_dir), **flags}, {}).settings
    return AgentInfo(
        settings=settings,
        apiserver="https://127.0.0.1:6443",
        agent="https://127.0.0.1:10250",
        kubeconfig=settings.root_dir / "kubeconfig" if settings.embedded else None,
    )


def banner(root_dir: Path, **flags: str) -> list[str]:
    return node_banner(info(root_dir, **flags), is_new=True).splitlines()


def test_commands_of_make_run_can_be_pasted_and_fit_80_columns(home: Path) -> None:
    lines = banner(home / ".podstatus", hostname_override="laptop")
    assert lines == [
        "node laptop is running; press Ctrl-C to stop",
        "  API server   https://127.0.0.1:6443 (embedded)",
        "  agent        https://127.0.0.1:10250, container runtime process",
        f"  files        {home}/.podstatus",
        "",
        "In another terminal, in this directory:",
        "  .venv/bin/podstatus get pods -A",
        "  .venv/bin/podstatus logs web -f",
        "  .venv/bin/podstatus watch -A",
        "  kubectl --kubeconfig .podstatus/kubeconfig get pods -A",
    ]
    assert max(len(line) for line in lines if str(home) not in line) <= 80


@pytest.mark.parametrize(
    ("root_dir", "option"),
    [("other", "--root-dir other"), ("/var/lib/my node", "--root-dir '/var/lib/my node'")],
)
def test_another_root_dir_is_in_every_command(home: Path, root_dir: str, option: str) -> None:
    lines = banner(home / root_dir, hostname_override="laptop")
    assert [line for line in lines if "podstatus " in line and option not in line] == []


def test_the_banner_of_an_observer_is_like_that_of_a_node(home: Path) -> None:
    observer = info(home / "observer", hostname_override="n")
    assert observer_banner("pods in all namespaces", observer).splitlines() == [
        "observing pods in all namespaces; press Ctrl-C to stop",
        "  API server   https://127.0.0.1:6443",
        "  observer     https://127.0.0.1:10250",
        f"  files        {home}/observer",
        "",
        "In another terminal, in this directory:",
        "  .venv/bin/podstatus get pods -A --root-dir observer",
        "  .venv/bin/podstatus watch -A --root-dir observer",
    ]


def test_a_node_of_a_cluster_has_no_sample_pods(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch()
    lines = banner(tmp_path, kubeconfig=str(kubeconfig), runtime="simulated", hostname_override="n")
    assert lines[1] == "  API server   https://127.0.0.1:6443 (external)"
    assert not any("logs web" in line or "kubectl" in line for line in lines)


def test_a_node_that_ran_before_may_have_no_sample_pods(home: Path) -> None:
    again = node_banner(info(home / ".podstatus", hostname_override="n"), is_new=False)
    assert ("logs" in again, "get pods -A" in again) == (False, True)


def test_without_sample_pods_none_is_named(home: Path) -> None:
    assert not any("web" in line for line in banner(home, samples="false", hostname_override="n"))
