"""What kubeconfigs say: one file, several of them, and the context that is picked."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("yaml", reason="needs podstatus[agent]")

from podstatus.client.auth.load_kubeconfig import load_kubeconfig
from podstatus.client.config_errors import KubeconfigError
from podstatus.client.kubeconfig.model import (
    Kubeconfig,
    PluginVariable,
    merge_kubeconfigs,
    resolve_context,
)
from podstatus.client.kubeconfig.parse import parse_kubeconfig
from podstatus.client.kubeconfig.validate import validate_context
from tests.client.kubeconfigs import data, document, write

FULL = """
apiVersion: v1
kind: Config
preferences: {colors: true}
current-context: dev
clusters:
- name: kind
  cluster:
    server: https://10.0.0.1:6443
    tls-server-name: kube.example
    certificate-authority: pki/ca.crt
    proxy-url: http://proxy:3128
    disable-compression: true
    extensions:
    - name: client.authentication.k8s.io/exec
      extension: {audience: here}
    - name: 2024-01-01
      extension: {last-update: 2024-01-01}
users:
- name: me
  user:
    tokenFile: ../token
    unknown: {field: 1}
    client-certificate: /abs/me.crt
    client-key-data: S0VZ
- name: plugin
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/login
      args: [--cluster, kind]
      env:
      - name: WHO
        value: me
      interactiveMode: Never
      provideClusterInfo: true
      installHint: "get it\\nthere \\e[1m"
contexts:
- name: dev
  context: {cluster: kind, user: me, namespace: team}
"""


def parsed(config: Any, origin: str = "/home/me/.kube/config") -> Kubeconfig:
    return parse_kubeconfig(json.dumps(config).encode(), origin)


def test_all_fields_are_read() -> None:
    config = parse_kubeconfig(FULL.encode(), "/home/me/.kube/config")
    choice = resolve_context(config)
    assert choice.namespace == "team"
    assert choice.source == 'context "dev" of /home/me/.kube/config'
    cluster, user = choice.cluster, choice.user
    assert (cluster.server, cluster.tls_server_name) == ("https://10.0.0.1:6443", "kube.example")
    assert cluster.proxy_url == "http://proxy:3128"
    assert [pem.path for pem in cluster.authority] == ["/home/me/.kube/pki/ca.crt"]
    assert cluster.plugin_config is not None
    assert bytes(cluster.plugin_config) == b'{"audience":"here"}'
    assert Path(user.token_file) == Path("/home/me/token")
    assert [pem.path for pem in user.certificate] == ["/abs/me.crt"]
    assert [pem.data for pem in user.key] == [b"KEY"]
    plugin = config.users["plugin"].plugin
    assert plugin is not None
    assert plugin.command == "/home/me/.kube/bin/login"
    assert plugin.args == ("--cluster", "kind")
    assert plugin.env == (PluginVariable(name="WHO", value="me"),)
    assert plugin.provide_cluster_info
    assert plugin.install_hint == "get it there [1m"


def test_yaml_and_json_say_the_same() -> None:
    as_yaml = parse_kubeconfig(FULL.encode(), "/x")
    as_json = parsed(yaml.safe_load(FULL.replace("2024-01-01", "'2024-01-01'")), "/x")
    assert as_yaml.contexts == as_json.contexts
    assert as_yaml.users["me"] == as_json.users["me"]


@pytest.mark.parametrize("command", ["login", "aws"])
def test_a_command_without_a_folder_is_looked_for_on_the_path(command: str) -> None:
    plugin = {"command": command, "apiVersion": "client.authentication.k8s.io/v1beta1"}
    found = parsed(document(user={"exec": plugin})).users["me"].plugin
    assert found is not None
    assert found.command == command


@pytest.mark.parametrize(
    "empty", [b"", b"\n", b"---\n", b"null", b"{}", b"# nothing", b"\xef\xbb\xbf"]
)
def test_a_file_may_say_nothing(empty: bytes) -> None:
    assert parse_kubeconfig(empty, "/x").is_empty


def test_null_is_as_good_as_nothing() -> None:
    config = document(user={"token": None, "exec": None, "as-groups": None})
    config |= {"preferences": None, "extensions": None}
    choice = resolve_context(parsed(config))
    validate_context(choice)
    assert not choice.user.token


def test_the_first_file_wins() -> None:
    first, second = document(user={"token": "first"}), document(user={"username": "second"})
    first["current-context"] = ""
    second["users"].append({"name": "other", "user": {"token": "other"}})
    second["contexts"][0]["context"]["namespace"] = "second"
    second["clusters"][0]["cluster"]["server"] = "https://second"
    both = merge_kubeconfigs([parsed(first, "/first"), parsed(second, "/second")])
    assert both.current_context == "dev"
    assert [both.users[name].token for name in ("me", "other")] == ["first", "other"]
    assert not both.users["me"].username, "entries are not mixed"
    assert both.contexts["dev"].namespace == ""
    assert both.clusters["kind"].server == "https://127.0.0.1:6443"
    assert both.origins == ("/first", "/second")


def test_relative_names_belong_to_the_file_they_are_in(tmp_path: Path) -> None:
    write(tmp_path / "a" / "config", document(cluster={"certificate-authority": "ca.crt"}))
    other = {"users": [{"name": "you", "user": {"tokenFile": "t"}}]}
    write(tmp_path / "b" / "config", other)
    paths = f"{tmp_path}/a/config:{tmp_path}/b/config:{tmp_path}/a/config::{tmp_path}/missing"
    config = load_kubeconfig(None, {"KUBECONFIG": paths})
    assert config.clusters["kind"].authority[0].path == f"{tmp_path}/a/ca.crt"
    assert config.users["you"].token_file == f"{tmp_path}/b/t"


def test_a_missing_file_of_the_list_is_skipped_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "config")
    config = load_kubeconfig(None, {"KUBECONFIG": f"{tmp_path}/missing:{path}"})
    assert config.current_context == "dev"
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert f"{tmp_path}/missing" in caplog.text


def test_the_home_folder_is_the_last_resort(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config")
    assert load_kubeconfig(None, {"HOME": str(tmp_path)}).current_context == "dev"


def test_a_named_file_wins_and_has_to_be_there(tmp_path: Path) -> None:
    path = write(tmp_path / "config")
    named = write(tmp_path / "named", document() | {"current-context": "named"})
    environment = {"KUBECONFIG": str(path)}
    assert load_kubeconfig(named, environment).current_context == "named"
    with pytest.raises(KubeconfigError, match=f"no kubeconfig at {tmp_path}/missing; pass"):
        load_kubeconfig(tmp_path / "missing", environment)


def test_a_named_context_wins() -> None:
    config = document()
    config["contexts"].append({"name": "prod", "context": {"cluster": "kind", "user": "me"}})
    assert resolve_context(parsed(config), "prod").context == "prod"
    assert resolve_context(parsed(config)).context == "dev"


@pytest.mark.parametrize(
    "user",
    [
        {},
        {"token": "t"},
        {"username": "u", "password": "p"},
        {"token": "t", "tokenFile": "/t"},
        {"token": "t", "client-certificate": "/c", "client-key": "/k"},
        {"username": "u", "client-certificate-data": data(b"c"), "client-key-data": data(b"k")},
        {"client-key": "/k"},
    ],
)
def test_what_client_go_takes_is_taken(user: dict[str, str]) -> None:
    validate_context(resolve_context(parsed(document(user=user))))
