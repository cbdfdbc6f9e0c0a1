"""The runtime of `--runtime`, and the files that its containers must not read."""

from pathlib import Path

import pytest

from podstatus.agent.compose.runtime import find_runtime, secret_files
from podstatus.agent.errors import EXIT_CONFIG, AgentError
from podstatus.agent.settings.load import load_settings
from podstatus.runtime.port import Runtime, RuntimeDownError
from podstatus.runtime.simulated.simulated_runtime import SimulatedRuntime
from podstatus.testing.clock import FakeClock

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: a
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: c, user: key}}]
users:
- {name: key, user: {client-certificate: node.crt, client-key: keys/node.key}}
- {name: token, user: {tokenFile: /etc/podstatus/token}}
- {name: inline, user: {token: psst}}
"""


class Mine(SimulatedRuntime):
    """A custom runtime."""

    def __init__(self, folder: Path) -> None:
        super().__init__(FakeClock(), folder=folder)


class Half:
    """Has a name, and that is all."""

    name = "half"

    def __init__(self, folder: Path) -> None:
        self.folder = folder


def needs_nothing() -> None:
    """Takes no folder."""


def is_down(folder: Path) -> Runtime:
    raise RuntimeDownError(f"no runtime in {folder.name}")


def found(name: str, folder: Path) -> Runtime:
    return find_runtime(name, folder, FakeClock())


def test_the_word_is_ours(tmp_path: Path) -> None:
    assert type(found("simulated", tmp_path)) is SimulatedRuntime


def test_a_class_of_a_module_is_called_with_the_folder_for_its_records(tmp_path: Path) -> None:
    assert isinstance(found(f"{__name__}:Mine", tmp_path), Mine)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:Mine", "No module named 'no_such_module'; pass a module on PYTHONPATH"),
        (f"{__name__}:Missing", "has no attribute 'Missing'; pass a module on PYTHONPATH"),
        (f"{__name__}:needs_nothing", "the class is called with the directory for its records"),
        (f"{__name__}:Half", "not implement version, start_pod, start_container, stop_container"),
        (f"{__name__}:is_down", "no runtime in"),
    ],
)
def test_an_unusable_class_is_reported(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(AgentError, match=message) as error:
        found(name, tmp_path)
    assert error.value.code == EXIT_CONFIG


def test_no_container_is_to_read_what_the_kubeconfig_names(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    flags = {"kubeconfig": str(kubeconfig), "runtime": "process", "root_dir": str(tmp_path / "r")}
    assert secret_files(load_settings(flags, {}).settings) == [
        tmp_path / "r",
        kubeconfig,
        tmp_path / "keys/node.key",
        Path("/etc/podstatus/token"),
    ]


def test_nor_what_lets_a_pod_of_a_cluster_in(tmp_path: Path) -> None:
    inside = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    flags = {"runtime": "process", "root_dir": str(tmp_path / "r")}
    found = secret_files(load_settings(flags, inside).settings)
    assert Path("/var/run/secrets/kubernetes.io/serviceaccount") in found
