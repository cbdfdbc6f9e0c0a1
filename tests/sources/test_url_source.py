"""A manifest at a URL of a real server."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from podstatus.kube.objects.pod import Pod
from podstatus.sources import url_source as url_module
from podstatus.sources.manifest.decode import ManifestProblem
from podstatus.sources.url_source import UrlSource, redact_manifest_url
from podstatus.testing.clock import FakeClock
from tests.support.loops import until
from tests.support.manifests import WEB, named
from tests.support.pod_services import ignore

SECRET = "s3cr3t-of-the-header"  # noqa: S105 - not a real secret


class Site:
    """Returns scripted responses, and records requests."""

    def __init__(self) -> None:
        self.answer = web.Response(text=WEB)
        self.hang = asyncio.Event()
        self.hang.set()
        self.asked: list[tuple[str, str | None]] = []

    async def serve(self, request: web.Request) -> web.Response:
        self.asked.append((str(request.rel_url), request.headers.get("X-Token")))
        await self.hang.wait()
        if request.path == "/elsewhere":
            return web.Response(text=named("moved"))
        body = self.answer.body
        assert body is None or isinstance(body, bytes)
        return web.Response(
            body=body,
            status=self.answer.status,
            headers={"Location": self.answer.headers.get("Location", "")},
        )


class Scene:
    def __init__(self, site: Site, server: TestServer, path: str = "/pods.yaml") -> None:
        self.site = site
        self.server = server
        self.clock = FakeClock()
        self.delivered: list[list[str]] = []
        self.problems: list[ManifestProblem] = []
        self.source = UrlSource(
            str(server.make_url(path)),
            "node-1",
            self._take,
            headers=[("X-Token", SECRET)],
            clock=self.clock,
            on_problem=self.problems.append,
            heartbeat=lambda: None,
        )

    def _take(self, pods: Iterable[Pod]) -> None:
        self.delivered.append([pod.name for pod in pods])

    async def read(self) -> list[str] | None:
        """Read; return the delivery, or None if there was none."""
        before = len(self.delivered)
        await self.source.read_once()
        return self.delivered[-1] if len(self.delivered) > before else None

    def take_messages(self) -> list[str]:
        messages = [problem.message for problem in self.problems]
        self.problems.clear()
        return messages


@asynccontextmanager
async def serving(path: str = "/pods.yaml") -> AsyncIterator[Scene]:
    site = Site()
    app = web.Application()
    app.router.add_get("/{path:.*}", site.serve)
    server = TestServer(app)
    async with server:
        yield Scene(site, server, path)


async def test_a_manifest_is_delivered_and_then_when_it_changes() -> None:
    async with serving() as scene:
        assert await scene.read() == ["web-node-1"]
        assert await scene.read() is None
        scene.site.answer = web.Response(text="# the same\n" + WEB)
        assert await scene.read() is None
        scene.site.answer = web.Response(text=named("a") + "---\n" + named("b"))
        assert await scene.read() == ["a-node-1", "b-node-1"]
        scene.site.answer = web.Response(text="apiVersion: v1\nkind: List\nitems: []\n")
        assert await scene.read() == []
        assert scene.site.asked[0] == ("/pods.yaml", SECRET)
        assert scene.take_messages() == []


async def test_the_last_good_pods_stay_whatever_goes_wrong(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving() as scene:
        await scene.read()
        caplog.set_level(logging.DEBUG)
        for answer, expected in [
            (web.Response(status=404), "the server returned 404 Not Found"),
            (web.Response(status=503), "the server returned 503 Service Unavailable"),
            (web.Response(text=""), "empty; add a Pod, or remove the manifest"),
            (web.Response(text="<html>"), "expected an object of apiVersion v1"),
            (web.Response(body=b"#" * (10 * 2**20 + 1)), "larger than 10 MiB"),
        ]:
            scene.site.answer = answer
            assert await scene.read() is None
            assert await scene.read() is None
            (message,) = scene.take_messages()
            assert message.startswith(expected)
        scene.site.answer = web.Response(text=WEB)
        assert await scene.read() is None
        assert caplog.records[-1].getMessage().startswith("manifest is valid again")
        assert SECRET not in caplog.text


async def test_nothing_is_delivered_before_the_first_valid_manifest() -> None:
    async with serving() as scene:
        for answer in (web.Response(status=500), web.Response(text="<html>")):
            scene.site.answer = answer
            assert await scene.read() is None
        scene.site.answer = web.Response(text=named("a") + "---\n" + named("b", oops="1"))
        assert await scene.read() == ["a-node-1"]


async def test_an_empty_answer_says_that_nothing_is_to_run_if_nothing_did() -> None:
    async with serving() as scene:
        scene.site.answer = web.Response(text="")
        assert await scene.read() == []


async def test_a_server_that_is_not_there_is_reported_once() -> None:
    async with serving() as scene:
        await scene.read()
        await scene.server.close()
        assert await scene.read() is None
        assert await scene.read() is None
        (message,) = scene.take_messages()
        assert message.startswith("cannot be read: ")


async def test_a_server_that_hangs_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url_module, "TIMEOUT_SECONDS", 0.1)
    async with serving() as scene:
        scene.site.hang.clear()
        assert await scene.read() is None
        assert scene.take_messages() == ["no response within 0.1 s"]
        monkeypatch.undo()
        scene.site.hang.set()
        assert await scene.read() == ["web-node-1"]


async def test_redirects_are_followed_without_telling_others_our_headers() -> None:
    async with serving() as here, serving() as there:
        here.site.answer = web.Response(status=302, headers={"Location": "/elsewhere"})
        assert await here.read() == ["moved-node-1"]
        assert here.site.asked[-1] == ("/elsewhere", SECRET)
        target = str(there.server.make_url("/elsewhere"))
        here.site.answer = web.Response(status=307, headers={"Location": target})
        assert await here.read() is None
        assert there.site.asked == [("/elsewhere", None)]
        assert here.take_messages() == []


@pytest.mark.parametrize("location", ["https://example.com/", "file:///etc/passwd"])
async def test_a_redirect_to_another_scheme_is_refused(location: str) -> None:
    async with serving() as scene:
        scene.site.answer = web.Response(status=302, headers={"Location": location})
        assert await scene.read() is None
        (message,) = scene.take_messages()
        assert message.startswith("redirect to another scheme")


async def test_a_redirect_to_itself_comes_to_an_end() -> None:
    async with serving() as scene:
        scene.site.answer = web.Response(status=302, headers={"Location": "/pods.yaml"})
        assert await scene.read() is None
        assert scene.take_messages() == ["more than 10 redirects"]


async def test_a_secret_in_the_url_is_not_shown() -> None:
    async with serving("/pods.yaml?token=abc") as scene:
        scene.site.answer = web.Response(status=404)
        await scene.read()
        (problem,) = scene.problems
        assert problem.location == str(scene.server.make_url("/pods.yaml")) + "?…"


def test_a_user_in_the_url_is_not_shown() -> None:
    assert redact_manifest_url(URL("http://me:pw@h:1/a#b")) == "http://h:1/a"


@pytest.mark.parametrize("url", ["ftp://h/a", "h/a", "", "http://"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        UrlSource(url, "node-1", ignore, clock=FakeClock(), on_problem=ignore, heartbeat=ignore)


async def test_run_reads_once_a_period() -> None:
    async with serving() as scene:
        task = asyncio.create_task(scene.source.run())
        await until(lambda: len(scene.delivered) == 1)
        scene.site.answer = web.Response(text=named("b"))
        while len(scene.delivered) < 2:
            await asyncio.sleep(0.01)
            await scene.clock.advance(10)
        task.cancel()
        assert scene.delivered == [["web-node-1"], ["b-node-1"]]
