"""The client of one-shot commands."""

import json
import socket
from pathlib import Path

import pytest

from podstatus.client.config_errors import KubeconfigError
from podstatus.client.rest.resources import CONFIG_MAPS
from podstatus.client.token_client import TokenClient
from podstatus.kube.api_errors import DeniedError, GoneError, UnavailableError
from podstatus.testing.apiserver import ApiServerThread, running_api_server
from tests.client.config_maps import config_map

TOKEN = "-".join(["wrong"] * 4)


def client_of(server: ApiServerThread, token: str = "") -> TokenClient:
    return TokenClient(
        server.url, token=token or server.token, authority=server.authority, connect_seconds=5
    )


def make_config_maps(server: ApiServerThread, *names: str) -> None:
    for name in names:
        path = "/api/v1/namespaces/default/configmaps"
        code, body = server.request("POST", path, json.loads(config_map(name, x=name)))
        assert code == 201, body


def test_objects_are_read_one_by_one_and_page_by_page(api_server: ApiServerThread) -> None:
    make_config_maps(api_server, "a", "b", "c")
    with client_of(api_server) as client:
        assert json.loads(client.get(CONFIG_MAPS, "a", namespace="default"))["data"] == {"x": "a"}
        page = json.loads(client.list(CONFIG_MAPS, namespace="default", limit=2))
        token = page["metadata"]["continue"]
        rest = json.loads(
            client.list(CONFIG_MAPS, namespace="default", limit=2, continue_token=token)
        )
    names = [item["metadata"]["name"] for item in [*page["items"], *rest["items"]]]
    assert names == ["a", "b", "c"]


def test_selectors_reach_the_server(api_server: ApiServerThread) -> None:
    make_config_maps(api_server, "a", "b")
    with client_of(api_server) as client:
        found = json.loads(client.list(CONFIG_MAPS, field_selector="metadata.name=b"))["items"]
    assert [item["metadata"]["name"] for item in found] == ["b"]


def test_a_missing_object_and_a_wrong_token_are_errors_by_class(
    api_server: ApiServerThread,
) -> None:
    with client_of(api_server) as client, pytest.raises(GoneError, match='"b" not found'):
        client.get(CONFIG_MAPS, "b", namespace="default")
    with client_of(api_server, TOKEN) as client, pytest.raises(DeniedError) as raised:
        client.list(CONFIG_MAPS)
    assert TOKEN not in str(raised.value)


def test_a_server_that_is_away_is_unavailable(api_server: ApiServerThread) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
    authority = api_server.authority
    with (
        TokenClient(url, token=TOKEN, authority=authority, connect_seconds=5) as client,
        pytest.raises(UnavailableError, match=r"configmaps: no response from .*refused"),
    ):
        client.list(CONFIG_MAPS)


def test_a_silent_server_times_out(api_server: ApiServerThread) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        authority = api_server.authority
        client = TokenClient(url, token=TOKEN, authority=authority, connect_seconds=0.2)
        with client, pytest.raises(UnavailableError, match="timeout waiting"):
            client.list(CONFIG_MAPS)


def test_the_token_is_not_sent_to_a_server_of_another_ca(
    api_server: ApiServerThread, tmp_path: Path
) -> None:
    with running_api_server(tmp_path) as other:
        authority = other.authority
        with (
            TokenClient(
                api_server.url, token=api_server.token, authority=authority, connect_seconds=5
            ) as client,
            pytest.raises(UnavailableError, match=f"refused: .*check that {authority} is its CA"),
        ):
            client.list(CONFIG_MAPS)


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_an_unusable_ca_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    authority = tmp_path / "ca.crt"
    if content is not None:
        authority.write_bytes(content)
    with pytest.raises(KubeconfigError, match=r"ca\.crt"):
        TokenClient("https://127.0.0.1:1", token=TOKEN, authority=authority, connect_seconds=5)
