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


def test_other_words_are_no_commands() -> None:
    result = CliRunner().invoke(app, ["statu"])
    assert result.exit_code == 2
    assert "Did you mean 'status'?" in result.stderr
