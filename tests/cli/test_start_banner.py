"""What `podstatus run` prints when the node is running."""

from pathlib import Path

import pytest

from podstatus.agent.daemon.run_agent import AgentInfo
from podstatus.agent.settings.load import load_settings
from podstatus.cli.start_banner import start_banner

HOME = Path("/home/me/podstatus")


def banner(root_dir: Path, program: str = ".venv/bin/podstatus", **flags: str) -> list[str]:
    settings = load_settings({"root_dir": str(root_dir), **flags}, {}).settings
    info = AgentInfo(
        settings=settings,
        apiserver="https://127.0.0.1:6443",
        agent="https://127.0.0.1:10250",
        kubeconfig=settings.root_dir / "kubeconfig" if settings.embedded else None,
    )
    return start_banner(info, program, HOME).splitlines()


def test_commands_of_make_run_can_be_pasted_and_fit_80_columns() -> None:
    lines = banner(HOME / ".podstatus", hostname_override="laptop")
    assert lines == [
        "node laptop is running; press Ctrl-C to stop",
        "  API server   https://127.0.0.1:6443 (embedded)",
        "  agent        https://127.0.0.1:10250, container runtime process",
        "  files        /home/me/podstatus/.podstatus",
        "",
        "In another terminal, in this directory:",
        "  .venv/bin/podstatus get pods -A",
        "  .venv/bin/podstatus logs web -f",
        "  .venv/bin/podstatus watch -A",
        "  kubectl --kubeconfig .podstatus/kubeconfig get pods -A",
    ]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("root_dir", "option"),
    [
        (HOME / "other", "--root-dir other"),
        (Path("/var/lib/my node"), "--root-dir '/var/lib/my node'"),
    ],
)
def test_another_root_dir_is_in_every_command(root_dir: Path, option: str) -> None:
    lines = banner(root_dir, "podstatus", hostname_override="laptop")
    assert [line for line in lines if "podstatus " in line and option not in line] == []


def test_a_node_of_a_cluster_has_no_sample_pods(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch()
    lines = banner(HOME, kubeconfig=str(kubeconfig), runtime="simulated", hostname_override="n")
    assert lines[1] == "  API server   https://127.0.0.1:6443 (external)"
    assert not any("logs web" in line or "kubectl" in line for line in lines)


def test_without_sample_pods_none_is_named() -> None:
    assert not any("web" in line for line in banner(HOME, samples="false", hostname_override="n"))
