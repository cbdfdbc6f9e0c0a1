"""Commands of kubectl that podstatus does not have."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from podstatus.agent.daemon.root_dir import RootDir
from podstatus.cli.register_commands import app
from podstatus.cli.start_command import StartCommand, record_start
from tests.cli.fake_node import fake_node


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("apply", "-f", "a b.yaml"), "no command apply; use kubectl: "),
        (("create", "--help"), "no command create; use kubectl: "),
        (("run", "web", "--image", "nginx"), "podstatus run starts a node, not a pod; use kubectl"),
        (("run", "web", "--image=nginx"), "podstatus run starts a node, not a pod; use kubectl: "),
    ],
)
def test_the_kubectl_command_is_named(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PODSTATUS_ROOT_DIR", str(tmp_path / "root"))
    with fake_node(tmp_path / "root", kubeconfig=str(tmp_path / "root/kubeconfig")):
        result = CliRunner().invoke(app, words)
    kubectl = "kubectl --kubeconfig root/kubeconfig"
    assert result.exit_code == 2
    assert result.stderr.startswith(f"podstatus: {message}")
    assert f": {kubectl} {words[0]} " in result.stderr
    assert CliRunner().invoke(app, words).stderr.rstrip() == result.stderr.rstrip().replace(
        kubectl, "kubectl"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("version",), "no command version; the version is an option: podstatus --version"),
        (("top", "pods"), "no command top; there is no metrics API; "),
        (("-n", "a", "get", "pods"), "options follow the command: podstatus get pods -n a\n"),
        (("--root-dir=/a b", "logs", "x"), "options follow the command: podstatus logs x '--root"),
        (("pods", "-A"), "no command pods; to list them: podstatus get pods\n"),
        (("--namespace",), "options follow the command: podstatus get pods --namespace\n"),
        (("logs", "deploy/web"), "'deploy/web' is not a pod; write it as in web or pod/web"),
    ],
)
def test_habits_have_a_hint(words: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"podstatus: {message}")


def test_a_timeline_without_a_pod_says_how_to_find_one() -> None:
    result = CliRunner().invoke(app, ["timeline"])
    assert result.exit_code == 2
    assert result.stderr.endswith(
        "Error: Missing argument 'POD|node/NAME'. To list pods: podstatus get pods -A; a deleted "
        "pod is found by its former name.\n"
    )
    assert "To list pods" not in CliRunner().invoke(app, ["timeline", "web", "--width=x"]).stderr


def test_an_option_of_kubectl_is_one_of_kubectl(tmp_path: Path) -> None:
    root_dir = tmp_path / "root"
    with fake_node(root_dir, kubeconfig="/srv/kubeconfig"):
        words = ["logs", "-l", "app=web", "--root-dir", str(root_dir), "--tail", "1"]
        result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert "Error: No such option: -l\nkubectl may have it:\n  kubectl " in result.stderr
    kubectl = "kubectl --kubeconfig /srv/kubeconfig logs -l app=web --tail 1"
    assert result.stderr.endswith(f"  {kubectl}\n")


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("late", "ls", "-l"), "exec late -- ls -l"),
        (("-n", "a", "--root-dir=r", "late", "-it", "ls", "-al", "--color"), ""),
        (("late", "-c", "app", "ls", "--color=x", "-l"), "exec late -c app -- ls --color=x -l"),
    ],
)
def test_options_of_the_command_to_execute_follow_two_dashes(
    words: tuple[str, ...], command: str
) -> None:
    result = CliRunner().invoke(app, ["exec", *words])
    command = command or "exec -n a --root-dir=r late -it -- ls -al --color"
    assert result.exit_code == 2
    assert result.stderr.endswith(
        f"\noptions of the command to execute follow --:\n  podstatus {command}\n"
    )
    assert "kubectl" not in result.stderr


def test_other_options_of_exec_are_those_of_kubectl() -> None:
    result = CliRunner().invoke(app, ["exec", "late", "--pod-running-timeout=1m", "ls", "-l"])
    assert "\nkubectl may have it:\n  kubectl exec late --pod-run" in result.stderr


@pytest.mark.parametrize("option", [("--for", "pod/late"), ("--for=pod/late",)])
def test_events_of_an_object_are_in_its_description(option: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, ["get", "events", "-n", "a", *option])
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert lines[-5] == "Error: No such option: --for"
    assert lines[-4:-1:2] == ["for the events of a pod:", "kubectl may have it:"]
    assert lines[-3] == "  podstatus describe pod late"
    assert lines[-1].startswith(f"  kubectl events -n a {' '.join(option)}")


def test_the_agent_is_restarted_as_it_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("PODSTATUS_ROOT_DIR", raising=False)
    with RootDir(tmp_path / ".podstatus") as root:
        record_start(root.path, StartCommand(words=("run",), directory=str(tmp_path), make=True))
        result = CliRunner().invoke(app, ["restart"])
    assert " ".join(result.stderr.split()) == (
        "podstatus: no command restart; to restart the agent: podstatus stop, then: make run; "
        "containers keep running"
    )


def test_a_misspelled_option_is_no_option_of_kubectl() -> None:
    result = CliRunner().invoke(app, ["get", "pods", "--namespaces", "a"])
    assert "No such option: --namespaces (Possible options: " in result.stderr
    assert "kubectl" not in result.stderr


def test_other_words_are_no_commands() -> None:
    result = CliRunner().invoke(app, ["statu"])
    assert result.exit_code == 2
    assert "Did you mean 'status'?" in result.stderr
