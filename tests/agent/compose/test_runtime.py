"""The dependencies of the process runtime."""

from pathlib import Path

from podstatus.agent.compose.runtime import secret_files
from podstatus.agent.settings.load import load_settings

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
