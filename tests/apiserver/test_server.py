"""The whole server over loopback: endpoints, objects and unknown paths."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from podstatus.apiserver.listener import CLOSE_SECONDS
from podstatus.apiserver.server import ApiServer
from podstatus.apiserver.storage.store import Store
from podstatus.apiserver.strategies.by_resource import selectable_fields

TOKEN = "t" * 20
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "main", "image": "nginx:1", "imag": 1}]},
}
UNKNOWN = 'unknown field "spec.containers[0].imag"'


class Client:
    """A client of a server under test."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._server = ApiServer(Store.open(None, selectable_fields), token=TOKEN, ssl_context=None)
        self._port = self._runner.run(self._server.start())

    def close(self) -> None:
        self._runner.run(self._server.stop())
        self._runner.close()

    def __call__(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> tuple[int, str, Any]:
        """Return the code, the warning and the body, decoded if it is JSON."""
        return self._runner.run(self._ask(method, path, body, content_type))

    async def _ask(
        self, method: str, path: str, body: Any, content_type: str
    ) -> tuple[int, str, Any]:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": content_type}
        url = f"http://127.0.0.1:{self._port}{path}"
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, data=data, headers=headers) as answer,
        ):
            text = await answer.text()
            decoded = json.loads(text) if answer.content_type == "application/json" else text
            return answer.status, answer.headers.get("Warning", ""), decoded


@pytest.fixture
def ask() -> Iterator[Client]:
    client = Client()
    yield client
    client.close()


# As kube-apiserver v1.36.4 answers.
@pytest.mark.parametrize(
    ("method", "path", "code", "expected"),
    [
        ("GET", "/nothing", 404, "404 page not found\n"),
        ("GET", "/apis/none", 404, "404 page not found\n"),
        ("GET", "/api/v2", 404, "NotFound"),
        ("GET", "/api/v1/nothing", 404, "NotFound"),
        ("GET", "/apis/coordination.k8s.io/v9", 404, "NotFound"),
        ("POST", "/version", 405, "MethodNotAllowed"),
        ("POST", "/api", 405, "MethodNotAllowed"),
        ("GET", "/readyz", 200, "ok"),
    ],
)
def test_between_pages_and_objects(
    ask: Client, method: str, path: str, code: int, expected: str
) -> None:
    actual, _, body = ask(method, path)
    assert actual == code
    assert (body if isinstance(body, str) else body["reason"]) == expected


def test_unknown_fields_are_refused_warned_about_or_ignored(ask: Client) -> None:
    path = "/api/v1/namespaces/default/pods?dryRun=All&fieldValidation="
    code, _, body = ask("POST", f"{path}Strict", POD)
    assert code == 400
    assert body["message"].endswith(UNKNOWN)
    warned = '299 - "' + UNKNOWN.replace('"', '\\"') + '"'
    assert ask("POST", path, POD)[:2] == (201, warned)
    assert ask("POST", f"{path}Ignore", POD)[:2] == (201, "")
    assert ask("POST", f"{path}bogus", POD)[0] == 422


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        ("application/merge-patch+json", {"spec": {"nope": 1}}),
        ("application/strategic-merge-patch+json", {"metadata": {"nope": 1}}),
        ("application/json-patch+json", [{"op": "add", "path": "/nope", "value": 1}]),
    ],
)
def test_patches_to_unknown_fields_are_refused_if_asked(
    ask: Client, content_type: str, patch: Any
) -> None:
    ask("POST", "/api/v1/namespaces/default/pods?fieldValidation=Ignore", POD)
    path = "/api/v1/namespaces/default/pods/web?fieldValidation=Strict"
    code, _, body = ask("PATCH", path, patch, content_type)
    assert (code, body["reason"]) == (422, "Invalid")
    assert "strict decoding error: unknown field" in body["message"]


def test_server_side_apply_is_refused_before_anything_is_looked_up(ask: Client) -> None:
    path = "/api/v1/namespaces/default/pods/none"
    code, _, body = ask("PATCH", path, {}, "application/apply-patch+yaml")
    assert (code, body["reason"]) == (415, "UnsupportedMediaType")


def test_objects_are_found_by_name(ask: Client) -> None:
    page = ask("GET", "/api/v1/namespaces?fieldSelector=metadata.name%3Ddefault")[2]
    assert [item["metadata"]["name"] for item in page["items"]] == ["default"]


async def test_a_server_stops_although_its_clients_watch_again_at_once() -> None:
    server = ApiServer(Store.open(None, selectable_fields), token=TOKEN, ssl_context=None)
    url = f"http://127.0.0.1:{await server.start()}/api/v1/pods?watch=1"
    watching = [asyncio.Event() for _ in range(10)]

    async def keep_watching(begun: asyncio.Event) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            while True:
                async with session.get(url) as answer:
                    begun.set()
                    await answer.read()

    clients = [asyncio.create_task(keep_watching(begun)) for begun in watching]
    await asyncio.gather(*(begun.wait() for begun in watching))
    async with asyncio.timeout(CLOSE_SECONDS / 2):  # it does not wait for a watch
        await server.stop()
    ends = await asyncio.gather(*clients, return_exceptions=True)
    assert all(isinstance(end, aiohttp.ClientError) for end in ends)
