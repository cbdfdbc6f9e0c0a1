"""Container logs and the agent's own logs over HTTPS."""

import asyncio
import gc
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp.test_utils import make_mocked_request
from yarl import URL

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodStatus,
)
from podstatus.runtime.streams import LogOptions, OutputStream, StreamUnavailableError
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock, run_ready_tasks
from podstatus.web.errors import HttpError
from podstatus.web.kubelet.idle_timeout import IdleTimeout
from podstatus.web.kubelet.logs import send_container_log
from podstatus.web.kubelet.pods import container_with_logs
from podstatus.web.query_parameters import log_request, read_query
from tests.support.web.fake_runtime import FakeLog
from tests.support.web.node_server import TOKEN, Scene, serve, until

LOGS = "/containerLogs/ns/p/app"
NOW = 1_700_000_000_000_000_000


async def test_a_log_is_sent_whole(scene: Scene) -> None:
    whole = "a\n" + "x" * 300_000 + "\n\x1b[2J\n"
    scene.runtime.logs["fake://app"] = FakeLog(b"a\n", b"x" * 300_000, b"\n\x1b[2J\n")
    async with scene.client() as session, session.get(LOGS) as answer:
        text = await answer.text()
        kind = answer.headers["Content-Type"]
    assert (answer.status, kind, text, scene.runtime.logs["fake://app"].readers) == (
        200,
        "text/plain",
        whole,
        0,
    )


async def test_an_empty_log_is_empty(scene: Scene) -> None:
    scene.runtime.logs["fake://app"] = FakeLog()
    assert await scene.get(LOGS) == (200, "")


async def test_a_client_of_another_age_gets_its_log(scene: Scene) -> None:
    scene.runtime.logs["fake://app"] = FakeLog(b"a\n", b"b\n")
    url = URL(scene.url)
    reader, writer = await asyncio.open_connection(url.host, url.port, ssl=scene.trust())
    writer.write(f"GET {LOGS} HTTP/1.0\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert (head.partition(b"\r\n")[0], body) == (b"HTTP/1.0 200 OK", b"a\nb\n")


async def test_a_log_is_followed_until_the_container_ends(scene: Scene) -> None:
    log = scene.runtime.logs["fake://app"] = FakeLog(b"one\n", ended=False)
    got = []
    async with scene.client() as session, session.get(f"{LOGS}?follow=true") as answer:
        got.append(await answer.content.readany())
        log.write(b"two\n")
        got.append(await answer.content.readany())
        log.end()
        got.append(await answer.content.read())
    assert got == [b"one\n", b"two\n", b""]


async def test_following_a_silent_log_sends_headers(scene: Scene) -> None:
    log = scene.runtime.logs["fake://app"] = FakeLog(ended=False)
    async with scene.client() as session, session.get(f"{LOGS}?follow=true") as answer:
        log.end()
        await answer.read()
    assert answer.status == 200


@pytest.mark.parametrize("pieces", [(), (b"one\n",)])
async def test_a_follower_that_goes_is_let_go(scene: Scene, pieces: tuple[bytes, ...]) -> None:
    log = scene.runtime.logs["fake://app"] = FakeLog(*pieces, ended=False)
    async with scene.client() as session, session.get(f"{LOGS}?follow=true"):
        assert log.readers == 1
    await until(lambda: log.readers == 0 and scene.answers.streams == 0)


@pytest.mark.parametrize("pieces", [(), (b"one\n",)])
async def test_followers_are_let_go_when_the_agent_stops(
    scene: Scene, pieces: tuple[bytes, ...]
) -> None:
    log = scene.runtime.logs["fake://app"] = FakeLog(*pieces, ended=False)
    async with scene.client() as session, session.get(f"{LOGS}?follow=true") as answer:
        await scene.server.stop()
        assert log.readers == 0
        with pytest.raises(aiohttp.ClientError):
            await answer.read()


async def test_a_log_that_breaks_off_as_its_reader_is_let_go_is_no_loose_end() -> None:
    loose: list[dict[str, Any]] = []

    asyncio.get_running_loop().set_exception_handler(lambda _, about: loose.append(about))

    async def breaks_off() -> AsyncIterator[bytes]:
        try:
            await asyncio.Event().wait()
            yield b""
        finally:
            raise StreamUnavailableError("the log is gone")

    request, idle = make_mocked_request("GET", LOGS), IdleTimeout(None, 0, FakeClock())
    sending = asyncio.ensure_future(send_container_log(request, breaks_off(), idle, follow=False))
    await run_ready_tasks()
    sending.cancel()
    await asyncio.wait([sending])
    assert sending.cancelled()
    del sending
    gc.collect()
    assert loose == []


async def test_a_reader_that_does_not_read_holds_up_its_log_alone(scene: Scene) -> None:
    log = scene.runtime.logs["fake://app"] = FakeLog(*[b"x" * 65536] * 2000)
    async with scene.client() as session, session.get(LOGS):
        await until(lambda: log.readers == 1)
        assert await scene.get("/healthz") == (200, "ok")
    await until(lambda: log.readers == 0)
    assert scene.answers.streams == 0


async def test_a_reader_that_does_not_read_for_too_long_is_let_go(tmp_path: Path) -> None:
    async with serve(tmp_path, idle_timeout_seconds=0.2) as scene:
        log = scene.runtime.logs["fake://app"] = FakeLog(*[b"x" * 65536] * 2000)
        async with scene.client() as session, session.get(LOGS) as answer:
            await until(lambda: log.readers == 0)
            with pytest.raises(aiohttp.ClientError):
                await answer.read()


async def test_a_missing_log_is_an_error(scene: Scene) -> None:
    assert await scene.get(LOGS) == (
        400,
        "the log of fake://app is gone\n",
    )


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        ("/containerLogs/ns/q/app", 404, 'pod "q" does not exist\n'),
        ("/containerLogs/other/p/app", 404, 'pod "p" does not exist\n'),
        ("/containerLogs/ns/p/b", 404, 'container "b" not found in pod "p"\n'),
        (
            f"{LOGS}?previous=true",
            400,
            'previous terminated container "app" in pod "p" not found\n',
        ),
        (f"{LOGS}?tailLines=x", 400, '{"message": "Unable to decode query."} (tailLines)\n'),
        (
            f"{LOGS}?tailLines=-1",
            422,
            (
                '{"message": "Invalid request."} '
                "(tailLines: Invalid value: -1: must be greater than or equal to 0)\n"
            ),
        ),
    ],
)
async def test_log_errors_have_a_code_and_a_text(
    scene: Scene, path: str, code: int, text: str
) -> None:
    assert await scene.get(path) == (code, text)


@pytest.mark.parametrize(
    ("query", "options", "previous"),
    [
        ("", LogOptions(), False),
        ("follow=true&timestamps=1", LogOptions(follow=True, timestamps=True), False),
        ("follow&previous=yes", LogOptions(follow=True), True),
        ("follow=false&previous=0&timestamps=FALSE", LogOptions(), False),
        ("tailLines=0", LogOptions(tail_lines=0), False),
        (f"tailLines={'0' * 5000}5", LogOptions(tail_lines=5), False),
        ("tail=all", LogOptions(), False),
        ("tail=5&tailLines=7", LogOptions(tail_lines=5), False),
        ("limitBytes=1", LogOptions(limit_bytes=1), False),
        ("sinceSeconds=10", LogOptions(since=NOW - 10_000_000_000), False),
        ("sinceSeconds=9223372036854775807", LogOptions(since=0), False),
        ("sinceTime=2023-11-14T22:13:20.5Z", LogOptions(since=NOW + 500_000_000), False),
        ("sinceTime=2023-11-15T00:13:20%2B02:00", LogOptions(since=NOW), False),
        ("sinceTime=", LogOptions(), False),
        ("stream=All&tailLines=1", LogOptions(tail_lines=1), False),
        ("stream=Stderr", LogOptions(stream=OutputStream.STDERR), False),
        (
            "stream=Stdout&insecureSkipTLSVerifyBackend=true",
            LogOptions(stream=OutputStream.STDOUT),
            False,
        ),
    ],
)
def test_a_query_says_which_part(query: str, options: LogOptions, previous: bool) -> None:
    asked = log_request(read_query(query), NOW)
    assert (asked.options, asked.previous) == (options, previous)


@pytest.mark.parametrize(
    ("query", "code", "why"),
    [
        ("tailLines=1e3", 400, "tailLines"),
        ("tailLines=9223372036854775808", 400, "tailLines"),
        ("limitBytes=", 400, "limitBytes"),
        ("sinceSeconds=1.5", 400, "sinceSeconds"),
        ("sinceTime=yesterday", 400, "sinceTime"),
        (f"tailLines=1{'0' * 5000}", 400, "tailLines"),
        (f"tailLines={'0' * 40}{2**63}", 400, "tailLines"),
        ("limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            "sinceSeconds=1&sinceTime=2023-11-14T22:13:20Z",
            422,
            "at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        (
            "stream=stdout",
            422,
            'stream: Unsupported value: supported values: "All", "Stdout", "Stderr"',
        ),
        (
            "stream=Stdout&tailLines=1",
            422,
            "`tailLines` and specific `stream` are mutually exclusive for now",
        ),
    ],
)
def test_an_invalid_log_query_is_rejected(query: str, code: int, why: str) -> None:
    with pytest.raises(HttpError) as refused:
        log_request(read_query(query), NOW)
    assert refused.value.code == code
    assert refused.value.text.endswith(f"({why})")


def _ended(container_id: str = "") -> ContainerState:
    return ContainerState(terminated=ContainerStateTerminated(container_id=container_id))


def _waits(reason: str) -> ContainerState:
    return ContainerState(waiting=ContainerStateWaiting(reason=reason))


RUNS = ContainerState(running=ContainerStateRunning())
NOTHING = ContainerState()


@pytest.mark.parametrize(
    ("state", "last", "previous", "found"),
    [
        (RUNS, NOTHING, False, "f://now"),
        (RUNS, _ended("f://1"), False, "f://now"),
        (RUNS, _ended("f://1"), True, "f://1"),
        (RUNS, _ended(), True, 'previous terminated container "a" in pod "p" not found'),
        (RUNS, NOTHING, True, 'previous terminated container "a" in pod "p" not found'),
        (_ended("f://2"), NOTHING, False, "f://2"),
        (_ended("f://2"), _ended("f://1"), False, "f://2"),
        (_ended(), _ended("f://1"), False, "f://1"),
        (_ended(), NOTHING, False, 'container "a" in pod "p" is terminated'),
        (_waits("CrashLoopBackOff"), _ended("f://1"), False, "f://1"),
        (_waits("CrashLoopBackOff"), _ended(), False, 'container "a" in pod "p" is terminated'),
        (
            _waits("ContainerCreating"),
            NOTHING,
            False,
            'container "a" in pod "p" is waiting to start: ContainerCreating',
        ),
        (
            _waits("ErrImagePull"),
            NOTHING,
            False,
            'container "a" in pod "p" is waiting to start: image can\'t be pulled',
        ),
        (
            _waits("ImagePullBackOff"),
            NOTHING,
            False,
            'container "a" in pod "p" is waiting to start: trying and failing to pull image',
        ),
        (NOTHING, NOTHING, False, 'container "a" in pod "p" is waiting to start - no logs yet'),
    ],
)
@pytest.mark.parametrize("kind", ["container", "init_container", "ephemeral_container"])
def test_which_attempt_is_meant(
    state: ContainerState, last: ContainerState, previous: bool, found: str, kind: str
) -> None:
    status = ContainerStatus(name="a", state=state, last_state=last, container_id="f://now")
    shown = msgspec.structs.replace(PodStatus(), **{f"{kind}_statuses": (status,)})
    pod = make_pod("p", status=shown)
    assert _told(pod, previous=previous) == found


def test_a_container_without_a_status_is_not_available() -> None:
    pod = make_pod("p")
    assert _told(pod, previous=False) == 'container "a" in pod "p" is not available'


def _told(pod: Pod, *, previous: bool) -> str:
    try:
        return container_with_logs(pod, "a", previous=previous)
    except HttpError as refusal:
        return refusal.text


async def test_the_agents_own_logs_are_listed_and_sent(scene: Scene) -> None:
    (scene.logs / "podstatus.log").write_text("line\n" * 50_000)
    (scene.logs / "a&b.log.1").write_text("")
    paths = ("/", "", "/podstatus.log", "/a%26b.log.1")
    listed, again, sent, empty = [await scene.get(f"/logs{path}") for path in paths]
    assert listed == again
    first = '<a href="a%26b.log.1">a&amp;b.log.1</a>'
    second = '<a href="podstatus.log">podstatus.log</a>'
    assert listed == (200, f"<pre>\n{first}\n{second}\n</pre>\n")
    assert sent == (200, "line\n" * 50_000)
    assert empty == (200, "")


async def test_nothing_else_can_be_read(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (scene.logs / "link").symlink_to(tmp_path / "secret")
    (scene.logs / "folder").mkdir()
    (scene.logs / ".hidden").write_text("secret")
    os.mkfifo(scene.logs / "pipe")
    code, page = await scene.get("/logs/")
    assert (code, page) == (200, "<pre>\n</pre>\n")
    names = ("link", "folder", ".hidden", "pipe", "none", "folder/", "..%2fsecret")
    assert [(await scene.get(f"/logs/{name}"))[0] for name in names] == [404] * 7


async def test_a_folder_that_is_a_link_is_not_followed(scene: Scene, tmp_path: Path) -> None:
    scene.logs.rename(tmp_path / "moved")
    scene.logs.symlink_to(tmp_path / "moved")
    assert (await scene.get("/logs/"))[0] == 404
