"""`podstatus delete` on an embedded server without a node."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from podstatus.agent.daemon.endpoints_file import AgentEndpoints
from podstatus.agent.daemon.root_dir import OBSERVER_FOLDERS, RootDir
from podstatus.cli.register_commands import app
from podstatus.testing.apiserver import ApiServerThread, running_api_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServerThread]:
    with running_api_server(tmp_path_factory.mktemp("served") / "apiserver") as server:
        yield server


@pytest.fixture(scope="module")
def root_dir(server: ApiServerThread, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """That of an agent on this server, as `podstatus run` writes it."""
    with RootDir(tmp_path_factory.mktemp("agent") / "root") as root:
        root.write_endpoints(
            AgentEndpoints(
                apiserver=server.url,
                agent="",
                token=server.token,
                certificate_authority=str(server.authority),
                node="n1",
                pid=os.getpid(),
            )
        )
        yield root.path


@pytest.fixture(autouse=True)
def pods(server: ApiServerThread) -> None:
    """No pods but these, none of them on a node."""
    for pod in existing(server):
        server.request("DELETE", f"{path(*pod)}?gracePeriodSeconds=0")
    for namespace, name in [("default", "a"), ("default", "b"), ("kube-system", "a")]:
        create(server, namespace, name)


def path(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/pods{f'/{name}' if name else ''}"


def create(server: ApiServerThread, namespace: str, name: str, **spec: Any) -> None:
    containers = [{"name": "app", "image": "nginx", "command": ["nginx"]}]
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": containers, **spec},
    }
    code, answer = server.request("POST", path(namespace), pod)
    assert code == 201, answer


def existing(server: ApiServerThread) -> list[tuple[str, str]]:
    _, listed = server.request("GET", "/api/v1/pods")
    return [(it["metadata"]["namespace"], it["metadata"]["name"]) for it in listed["items"]]


def delete(root_dir: Path, *words: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, ["delete", *words, "--root-dir", str(root_dir)], input=text)


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (("pod", "a"), [("default", "b"), ("kube-system", "a")]),
        (("pod/a", "b"), [("kube-system", "a")]),
        (("Pods", "a", "-n", "kube-system"), [("default", "a"), ("default", "b")]),
        (("pods", "--all"), [("kube-system", "a")]),
        (("pods", "--all", "-A"), []),
        (("pods", "-A", "-l", "app in (a)"), [("default", "b")]),
        (("pods", "-l", "app=none"), [("default", "a"), ("default", "b"), ("kube-system", "a")]),
    ],
)
def test_what_is_named_or_selected_is_deleted(
    server: ApiServerThread, root_dir: Path, words: tuple[str, ...], left: list[tuple[str, str]]
) -> None:
    result = delete(root_dir, *words)
    assert (result.exit_code, result.stderr) == (0, "")
    assert existing(server) == left


def test_a_pod_of_another_cluster_is_deleted(server: ApiServerThread) -> None:
    words = ["delete", "pod", "a", "--kubeconfig", str(server.kubeconfig)]
    result = CliRunner().invoke(app, words)
    assert (result.stdout, result.stderr) == ('pod "a" deleted from default namespace\n', "")
    assert ("default", "a") not in existing(server)


def test_the_pods_of_a_file_are_deleted(server: ApiServerThread, root_dir: Path) -> None:
    text = """
    {kind: Pod, metadata: {name: b}}
    ---
    kind: List
    items: [{kind: Pod, metadata: {name: a, namespace: kube-system}}]
    """
    result = delete(root_dir, "-f", "-", text=text.replace("    ", ""))
    assert result.stdout == (
        'pod "b" deleted from default namespace\npod "a" deleted from kube-system namespace\n'
    )
    assert existing(server) == [("default", "a")]


def test_a_missing_pod_is_reported_and_the_others_are_deleted(
    server: ApiServerThread, root_dir: Path
) -> None:
    result = delete(root_dir, "pod", "none", "b")
    assert (result.exit_code, result.stdout) == (1, 'pod "b" deleted from default namespace\n')
    assert result.stderr.startswith("podstatus: pod 'none' not found in namespace default; see: ")
    assert ("default", "b") not in existing(server)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [((), 30), (("--grace-period", "7"), 7), (("--now",), 1), (("--grace-period=0",), 1)],
)
def test_the_grace_period_is_the_pods_own_or_the_given_one(
    server: ApiServerThread, root_dir: Path, words: tuple[str, ...], seconds: int
) -> None:
    create(server, "default", "bound", nodeName="n1")
    result = delete(root_dir, "pod", "bound", "--no-wait", *words)
    assert result.exit_code == 0, result.stderr
    _, pod = server.request("GET", path("default", "bound"))
    assert pod["metadata"]["deletionGracePeriodSeconds"] == seconds


def test_force_deletes_at_once_and_warns(server: ApiServerThread, root_dir: Path) -> None:
    create(server, "default", "bound", nodeName="n1")
    result = delete(root_dir, "pod", "bound", "--force")
    assert result.stdout == 'pod "bound" force deleted from default namespace\n'
    assert result.stderr.startswith("Warning: Immediate deletion does not wait")
    assert ("default", "bound") not in existing(server)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "pass names of pods, --selector, --all or --filename"),
        (("pod", "a", "--all"), "pass names of pods, --selector, --all or --filename"),
        (("pod", "a", "-A"), "--all-namespaces requires --selector or --all"),
        (("a",), "unsupported type 'a'; to delete the pod: podstatus delete pod a "),
        (("pod", "a", "--now", "--grace-period=3"), "--now and --grace-period cannot be combined"),
        (("pod", "a", "--force", "--grace-period=3"), "--force and --grace-period greater than 0"),
        (("pod", "-l", "a in b"), "--selector: unable to parse requirement"),
    ],
)
def test_an_invalid_command_line_deletes_nothing(
    server: ApiServerThread, root_dir: Path, words: tuple[str, ...], message: str
) -> None:
    result = delete(root_dir, *words)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"podstatus: {message}")
    assert len(existing(server)) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Service\nmetadata: {name: a}", "- has an object of kind Service; for"),
        ("- 1", "- has an object of kind <none>; for"),
        ("[", "- is not YAML: "),
    ],
)
def test_a_file_without_pods_is_reported(root_dir: Path, text: str, message: str) -> None:
    result = delete(root_dir, "-f", "-", text=text)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"podstatus: {message}")


def test_nothing_is_deleted_for_an_observer(server: ApiServerThread, tmp_path: Path) -> None:
    kubeconfig = str(server.kubeconfig)
    with RootDir(tmp_path / "root", OBSERVER_FOLDERS) as root:
        root.write_endpoints(
            AgentEndpoints(
                apiserver=server.url,
                agent="",
                kubeconfig=kubeconfig,
                node="",
                observes=True,
                pid=os.getpid(),
            )
        )
        before = existing(server)
        refused = delete(root.path, "pod", "a")
        assert existing(server) == before
        deleted = delete(root.path, "pod", "a", "--kubeconfig", kubeconfig)
    assert refused.exit_code == 1
    assert "a cluster observer deletes nothing; use kubectl delete pod" in refused.stderr
    assert deleted.exit_code == 0, deleted.output
    assert ("default", "a") not in existing(server)
