"""What pods refer to, over HTTP."""

import asyncio
import base64
import json
from typing import Any

import pytest

from podstatus.client.api_client import ApiClient
from podstatus.client.typed.pod_references import HttpPodObjects
from podstatus.kube.api_errors import ApiError, RejectedError
from podstatus.kube.scalars.time import Time
from podstatus.runtime.process.reference_resolver import PodObjects
from podstatus.testing.apiserver import ApiServerThread
from podstatus.testing.builders import make_pod
from tests.client.raw_server import answer, raw_server
from tests.support.plain_access import PlainAccess


async def test_config_maps_and_secrets_are_read(api_server: ApiServerThread) -> None:
    coded = base64.b64encode(b"hush").decode()
    path = "/api/v1/namespaces/default"
    api_server.request(
        "POST", f"{path}/configmaps", {"metadata": {"name": "c"}, "data": {"k": "v"}}
    )
    api_server.request("POST", f"{path}/secrets", {"metadata": {"name": "s"}, "data": {"p": coded}})
    async with ApiClient(PlainAccess.of(api_server)) as client:
        objects: PodObjects = HttpPodObjects(client)
        config_map = await objects.config_map("default", "c")
        secret = await objects.secret("default", "s")
        assert config_map is not None
        assert config_map.data == {"k": "v"}
        assert secret is not None
        assert secret.data == {"p": coded}


async def test_what_is_not_there_is_none(api_server: ApiServerThread) -> None:
    async with ApiClient(PlainAccess.of(api_server)) as client:
        objects: PodObjects = HttpPodObjects(client)
        assert await objects.config_map("default", "none") is None
        assert await objects.secret("none", "none") is None


@pytest.mark.parametrize("name", ["", "..", "a/b"])
async def test_a_name_that_leads_elsewhere_is_rejected(
    api_server: ApiServerThread, name: str
) -> None:
    async with ApiClient(PlainAccess.of(api_server)) as client:
        objects: PodObjects = HttpPodObjects(client)
        with pytest.raises(RejectedError):
            await objects.secret("default", name)


async def test_a_token_is_bound_to_its_pod() -> None:
    asked: list[Any] = []
    status = {"token": "abc", "expirationTimestamp": "2100-01-01T01:00:00Z"}

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = await reader.readuntil(b'"status":')
        asked.append(json.loads(body + b"{}}"))
        writer.write(answer(json.dumps({"spec": {}, "status": status}).encode()))

    async with raw_server(say) as address, ApiClient(PlainAccess(address)) as client:
        made = await HttpPodObjects(client).service_account_token(make_pod("web"), "me", 600)
        assert made.token == "abc"  # noqa: S105
        assert made.expiration_timestamp == Time.parse(status["expirationTimestamp"])
        assert "abc" not in repr(made)
    (request,) = asked
    assert request["spec"]["audiences"] == ["me"]
    assert request["spec"]["expirationSeconds"] == 600
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "uid-web"}
    assert request["spec"]["boundObjectRef"] == bound


async def test_an_answer_that_cannot_be_read_is_not_repeated() -> None:
    async def say(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b'{"data": {"p": ["hush"]}}'))

    async with raw_server(say) as address, ApiClient(PlainAccess(address)) as client:
        with pytest.raises(ApiError) as refused:
            await HttpPodObjects(client).secret("default", "s")
        assert "hush" not in str(refused.value)
