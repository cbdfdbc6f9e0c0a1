"""Requests over real sockets, to the embedded API server and to one that says odd things."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the client needs podstatus[agent]")

from podstatus.base.rate_limiter import RateLimiter
from podstatus.client.api_client import ApiClient
from podstatus.client.rest.http_transport import Timeouts
from podstatus.client.rest.request import MERGE
from podstatus.client.rest.resources import CONFIG_MAPS, LEASES, NODES, PODS
from podstatus.kube.api_errors import (
    ApiError,
    BusyError,
    ConflictError,
    DeniedError,
    GoneError,
    RejectedError,
    UnavailableError,
)
from podstatus.testing.apiserver import ApiServerThread
from tests.client.config_maps import config_map
from tests.client.raw_server import answer, hang, raw_server
from tests.support.plain_access import PlainAccess


@pytest.fixture
async def client(api_server: ApiServerThread) -> AsyncIterator[ApiClient]:
    async with ApiClient(PlainAccess.of(api_server)) as client:
        yield client


def names(body: bytes) -> list[str]:
    return [item["metadata"]["name"] for item in json.loads(body)["items"]]


async def test_an_object_is_created_read_patched_replaced_and_deleted(
    client: ApiClient,
) -> None:
    where: Any = {"namespace": "default"}
    await client.create(CONFIG_MAPS, config_map("a", x="1"), **where)
    assert json.loads(await client.get(CONFIG_MAPS, "a", **where))["data"] == {"x": "1"}
    patched = await client.patch(
        CONFIG_MAPS, "a", b'{"data":{"y":"2"}}', content_type=MERGE, **where
    )
    assert json.loads(patched)["data"] == {"x": "1", "y": "2"}
    replaced = await client.replace(CONFIG_MAPS, "a", config_map("a", z="3"), **where)
    assert json.loads(replaced)["data"] == {"z": "3"}
    await client.delete(CONFIG_MAPS, "a", **where)
    with pytest.raises(GoneError, match='configmaps "a" not found'):
        await client.get(CONFIG_MAPS, "a", **where)


async def test_lists_are_selected_and_come_in_pages(
    api_server: ApiServerThread, client: ApiClient
) -> None:
    for name in "abcde":
        api_server.request(
            "POST",
            "/api/v1/namespaces/default/configmaps",
            {"metadata": {"name": name, "labels": {"half": str(name < "c")}}},
        )

    async def pages() -> AsyncIterator[list[str]]:
        token = ""
        while True:
            page = await client.list(CONFIG_MAPS, limit=2, continue_token=token)
            yield names(page)
            if not (token := json.loads(page)["metadata"].get("continue", "")):
                return

    assert [page async for page in pages()] == [["a", "b"], ["c", "d"], ["e"]]
    chosen = await client.list(
        CONFIG_MAPS,
        namespace="default",
        label_selector="half in (True)",
        field_selector="metadata.name!=a",
    )
    assert names(chosen) == ["b"]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (403, DeniedError),
        (404, GoneError),
        (409, ConflictError),
        (410, GoneError),
        (422, RejectedError),
        (429, BusyError),
        (500, UnavailableError),
        (503, UnavailableError),
    ],
)
async def test_every_refusal_has_its_place_in_the_tree(
    api_server: ApiServerThread, client: ApiClient, code: int, kind: type[ApiError]
) -> None:
    api_server.inject({"verb": "get", "resource": "nodes", "code": code, "retryAfter": 7})
    with pytest.raises(ApiError) as caught:
        await client.get(NODES, "n1")
    assert type(caught.value) is kind
    assert caught.value.code == code
    assert caught.value.retry_after == 7
    assert str(caught.value).startswith("GET /api/v1/nodes/n1: fault injected")


async def test_refused_credentials_are_renewed_and_the_request_sent_once_more(
    api_server: ApiServerThread,
) -> None:
    async with ApiClient(PlainAccess.of(api_server, "expired")) as client:
        assert names(await client.list(PODS)) == []


async def test_credentials_that_are_refused_twice_are_an_error(api_server: ApiServerThread) -> None:
    message = r"did not accept the credentials.*user of the test"
    async with ApiClient(PlainAccess.of(api_server, "expired", "wrong-too")) as client:
        with pytest.raises(RejectedError, match=message) as e:
            await client.list(PODS)
    assert e.value.code == 401
    assert "wrong-too" not in str(e.value)


async def test_credentials_that_cannot_be_renewed_are_sent_once(
    api_server: ApiServerThread,
) -> None:
    known = PlainAccess.of(api_server)
    tls = (await known.credentials()).tls
    access = PlainAccess(known.server, "wrong", tls=tls)
    async with ApiClient(access) as client:
        with pytest.raises(RejectedError):
            await client.list(PODS)
    assert access.renewals == 1


async def test_a_patch_that_names_another_uid_is_a_conflict(
    api_server: ApiServerThread, client: ApiClient
) -> None:
    pod = {
        "metadata": {"name": "web"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
    }
    api_server.request("POST", "/api/v1/namespaces/default/pods", pod)
    patch = b'{"metadata":{"uid":"11111111-2222-3333-4444-555555555555"},"status":{"reason":"x"}}'
    with pytest.raises(ConflictError):
        await client.patch(PODS, "web", patch, namespace="default", subresource="status")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b"])
@pytest.mark.parametrize("verb", ["get", "replace", "patch", "delete"])
async def test_a_name_that_leads_elsewhere_is_refused_before_it_is_sent(
    api_server: ApiServerThread, client: ApiClient, verb: str, name: str
) -> None:
    # An empty name would address all objects: a DELETE would delete them all.
    api_server.request(
        "POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}}
    )
    body = [b"{}"] if verb in ("replace", "patch") else []
    with pytest.raises(ValueError, match="is not a valid name"):
        await getattr(client, verb)(CONFIG_MAPS, name, *body, namespace="default")
    with pytest.raises(ValueError, match="are namespaced"):
        await getattr(client, verb)(CONFIG_MAPS, "kept", *body)
    assert [stored["metadata"]["name"] for stored in api_server.list_objects("configmaps")] == [
        "kept"
    ]


async def test_what_is_in_no_namespace_is_not_looked_for_in_one() -> None:
    with pytest.raises(ValueError, match="nodes are cluster-scoped"):
        NODES.object("n1", "default")
    with pytest.raises(ValueError, match="is not a valid namespace"):
        PODS.collection("")
    with pytest.raises(ValueError, match="pass a namespace"):
        await ApiClient(PlainAccess("http://127.0.0.1:1")).create(PODS, b"{}")


@pytest.mark.parametrize("body", [{}, "{}", 5])
async def test_a_body_that_is_no_text_is_refused(body: Any) -> None:
    client = ApiClient(PlainAccess("http://127.0.0.1:1"))
    with pytest.raises(TypeError, match="pass JSON text as bytes"):
        await client.patch(NODES, "n1", body)


def test_paths_are_where_kubernetes_has_them() -> None:
    assert NODES.object("n1", subresource="status") == "/api/v1/nodes/n1/status"
    assert PODS.collection() == "/api/v1/pods"
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"
    assert LEASES.object("n1", "kube-node-lease") == lease
    assert PODS.object("a?b", "default") == "/api/v1/namespaces/default/pods/a%3Fb"


async def _web_page(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(answer(b"<html>welcome</html>", "200 OK", "Content-Type: text/html; charset=x"))


@pytest.mark.parametrize("watched", [False, True])
async def test_a_web_page_is_no_answer(watched: bool) -> None:
    message = "returned a web page, it is not an API server; check the server of the test"
    async with raw_server(_web_page) as address, ApiClient(PlainAccess(address)) as client:
        asked = client.watch(NODES).__aenter__() if watched else client.get(NODES, "n1")
        with pytest.raises(UnavailableError, match=message):
            await asked


async def _refused_with_a_page(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(answer(b"<html>\n<h1>Bad gateway</h1>" + b"x" * 4000, "502 Bad Gateway"))


async def test_an_answer_that_is_no_status_is_shown_in_short() -> None:
    async with (
        raw_server(_refused_with_a_page) as address,
        ApiClient(PlainAccess(address)) as client,
    ):
        with pytest.raises(UnavailableError) as caught:
            await client.get(NODES, "n1")
    message = str(caught.value)
    assert message.startswith(
        "GET /api/v1/nodes/n1: 502 Bad Gateway: <html> <h1>Bad gateway</h1>xxx"
    )
    assert len(message) < 300


async def test_a_server_that_never_answers_is_given_up() -> None:
    timing = Timeouts(total_seconds=0.2)
    async with (
        raw_server(hang) as address,
        ApiClient(PlainAccess(address), timeouts=timing) as client,
    ):
        with pytest.raises(UnavailableError, match="timeout waiting for"):
            await client.get(NODES, "n1")


async def test_each_purpose_has_a_limit_of_its_own(client: ApiClient) -> None:
    events = client.with_rate_limit(RateLimiter(0.001, 1))
    await events.list(PODS)
    waiting = asyncio.create_task(events.list(PODS))
    await client.list(PODS)
    assert not waiting.done()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_a_client_that_is_not_open_says_so() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        await ApiClient(PlainAccess("http://127.0.0.1:1")).list(PODS)


async def test_a_caller_may_be_cancelled() -> None:
    async with (
        raw_server(hang) as address,
        ApiClient(PlainAccess(address)) as client,
    ):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.list(PODS)
