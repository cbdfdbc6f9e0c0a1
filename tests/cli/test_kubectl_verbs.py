"""Commands of kubectl that podstatus does not have."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from podstatus.cli.register_commands import app
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


def test_an_option_of_kubectl_is_one_of_kubectl(tmp_path: Path) -> None:
    root_dir = tmp_path / "root"
    with fake_node(root_dir, kubeconfig="/srv/kubeconfig"):
        words = ["logs", "-l", "app=web", "--root-dir", str(root_dir), "--tail", "1"]
        result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert "Error: No such option: -l\nkubectl may have it:\n  kubectl " in result.stderr
    kubectl = "kubectl --kubeconfig /srv/kubeconfig logs -l app=web --tail 1"
    assert result.stderr.endswith(f"  {kubectl}\n")


def test_a_misspelled_option_is_no_option_of_kubectl() -> None:
    result = CliRunner().invoke(app, ["get", "pods", "--namespaces", "a"])
    assert "No such option: --namespaces (Possible options: " in result.stderr
    assert "kubectl" not in result.stderr


def test_other_words_are_no_commands() -> None:
    result = CliRunner().invoke(app, ["statu"])
    assert result.exit_code == 2
    assert "Did you mean 'status'?" in result.stderr
