"""The request of a webhook, and the meaning of each response."""

import asyncio
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from podstatus.alerts.model import Action, Alert
from podstatus.alerts.notifiers.http_post import HttpPostClient, retry_after
from podstatus.alerts.notifiers.messages.webhook_message import MAX_BODY_BYTES, webhook_headers
from podstatus.alerts.notifiers.webhook import WebhookNotifier
from podstatus.alerts.ports import ActionError, NotSentError, RetryableError
from podstatus.base.system_clock import SystemClock
from podstatus.testing.clock import FakeClock
from tests.alerts.sample_alerts import START, firing, resolved
from tests.support.certificates import authority
from tests.support.webhook_server import web_server

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "alerting.md"


@asynccontextmanager
async def telling(url: str, **options: str) -> AsyncIterator[Callable[..., Any]]:
    """Send an alert to a webhook with these options."""
    http = HttpPostClient(clock=SystemClock())
    notifier = WebhookNotifier(
        http, clock=FakeClock(), link=lambda alert: f"https://n1/v1?id={alert.id}"
    )
    action = Action(kind="webhook", options={"url": url, **options})

    async def update(alert: Alert | None = None) -> None:
        await notifier.send(action, alert or firing())

    try:
        yield update
    finally:
        await http.close()


def a_secret(folder: Path, text: str = "between us", mode: int = 0o600) -> Path:
    path = folder / "secret"
    path.write_text(text + "\n")
    path.chmod(mode)
    return path


def documented_check() -> Callable[[dict[str, str], bytes, bytes], bool]:
    """The function in the docs that verifies a signature."""
    (source,) = re.findall(r"```python\n(.*?def is_ours.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(source, names)  # noqa: S102 - our own page
    found: Callable[[dict[str, str], bytes, bytes], bool] = names["is_ours"]
    return found


async def test_the_alert_is_posted_as_the_page_says() -> None:
    async with web_server() as server, telling(f"{server.url}/hook?room=1") as update:
        await update()
        await update(resolved(firing()))
    first, second = server.posts
    assert first.path == "/hook"
    assert first.json() == {
        "version": 1,
        "id": "CrashLoop-a-1",
        "dedupKey": "3db3add37b8ff3afc140",
        "state": "firing",
        "rule": "CrashLoop",
        "severity": "warning",
        "subject": {
            "scope": "pod",
            "namespace": "web",
            "name": "pod-a",
            "uid": "u-a",
            "node": "n1",
        },
        "labels": {"alertname": "CrashLoop", "severity": "warning", "pod": "pod-a"},
        "annotations": {"summary": "pod-a crashes"},
        "truncated": False,
        "since": "2099-12-31T23:59:00.000000Z",
        "fired": "2100-01-01T00:00:00.000000Z",
        "resolved": None,
        "link": "https://n1/v1?id=CrashLoop-a-1",
    }
    assert set(first.json()) == set(re.findall(r'^  "(\w+)": ', PAGE.read_text(), re.MULTILINE))
    assert first.headers["content-type"] == "application/json"
    assert first.headers["idempotency-key"] == "CrashLoop-a-1-firing"
    assert "webhook-signature" not in first.headers
    assert second.headers["idempotency-key"] == "CrashLoop-a-1-resolved"
    assert second.json()["state"] == "resolved"
    assert second.json()["resolved"] == "2100-01-01T00:00:01.000000Z"


def test_it_is_signed_as_standard_webhooks_are() -> None:
    # The test vector of the Standard Webhooks libraries.
    headers = webhook_headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
        b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_who_verifies_as_the_page_shows_accepts_ours_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = a_secret(tmp_path)

    async with web_server() as server, telling(server.url, secretFile=str(secret)) as update:
        await update()
        secret.write_text("another one\n")  # it is read again each time
        await update()
    first, second = server.posts
    is_ours = documented_check()
    sent = START / 1e9
    monkeypatch.setattr(time, "time", lambda: sent + 10)
    assert is_ours(first.headers, first.body, b"between us")
    assert is_ours(second.headers, second.body, b"another one")
    assert not is_ours(first.headers, first.body, b"another one")
    assert not is_ours(first.headers, first.body + b" ", b"between us")
    for name in ("webhook-id", "webhook-timestamp"):
        changed = {**first.headers, name: str(int(sent) + 1)}
        assert not is_ours(changed, first.body, b"between us")
    without = {k: v for k, v in first.headers.items() if k != "webhook-signature"}
    assert not is_ours(without, first.body, b"between us")
    monkeypatch.setattr(time, "time", lambda: sent + 301)  # replayed
    assert not is_ours(first.headers, first.body, b"between us")


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        ("", 0o600, "is empty"),
        ("between us", 0o644, "accessible to every user"),
        ("whsec_%%%", 0o600, "not base64"),
    ],
)
async def test_without_a_secret_that_is_one_nothing_is_sent_yet(
    tmp_path: Path, text: str, mode: int, why: str
) -> None:
    secret = a_secret(tmp_path, text, mode)

    async with web_server() as server, telling(server.url, secretFile=str(secret)) as update:
        with pytest.raises(NotSentError, match=why):
            await update()
        secret.unlink()
        with pytest.raises(NotSentError, match="no such file"):
            await update()
        assert not server.posts


async def test_a_token_is_sent_and_read_again_each_time(tmp_path: Path) -> None:
    token = a_secret(tmp_path, "t-1")

    async with web_server() as server, telling(server.url, tokenFile=str(token)) as update:
        await update()
        token.write_text("t-2")
        await update()
        token.write_text("two words")
        with pytest.raises(NotSentError, match="does not contain a valid token"):
            await update()
    assert [post.headers["authorization"] for post in server.posts] == [
        "Bearer t-1",
        "Bearer t-2",
    ]


@pytest.mark.parametrize("user", ["me:s3cret", "me", ":s3cret"])
async def test_a_user_in_the_url_goes_without_a_token(tmp_path: Path, user: str) -> None:
    token = a_secret(tmp_path, "t-1")

    async with web_server() as server:
        url = server.url.replace("://", f"://{user}@")
        async with telling(url) as update:
            await update()
        async with telling(url, tokenFile=str(token)) as update:
            with pytest.raises(ActionError, match="remove one of them") as caught:
                await update()
        assert not isinstance(caught.value, RetryableError)
    (post,) = server.posts
    assert post.headers["authorization"].startswith("Basic ")


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
async def test_any_success_is_one(code: int) -> None:
    async with web_server() as server, telling(server.url) as update:
        server.answers = [web.Response(status=code)]
        await update()


@pytest.mark.parametrize("code", [408, 425, 429, 500, 502, 503, 504, 599])
async def test_what_is_about_this_moment_is_tried_again(code: int) -> None:
    async with web_server() as server, telling(server.url) as update:
        server.answers = [web.Response(status=code, headers={"Retry-After": "7"})]
        with pytest.raises(RetryableError, match=str(code)) as caught:
            await update()
        assert caught.value.retry_after_seconds == 7
        assert not isinstance(caught.value, NotSentError)


@pytest.mark.parametrize("code", [400, 410, 413, 422])
async def test_refusals_of_the_alert_itself_are_for_good(code: int) -> None:
    async with web_server() as server, telling(server.url) as update:
        server.answers = [web.Response(status=code, text="no\x1b[31m way")]
        with pytest.raises(ActionError, match=rf"{code}.*no\^\[\[31m way") as caught:
            await update()
        assert not isinstance(caught.value, RetryableError)


@pytest.mark.parametrize("code", [301, 307, 401, 403, 404, 405])
async def test_refusals_on_the_way_are_mended_some_day_and_redirects_lead_nowhere(
    code: int,
) -> None:
    async with web_server() as other, web_server() as server, telling(server.url) as update:
        headers = {"Location": other.url, "Retry-After": "7"}
        server.answers = [web.Response(status=code, headers=headers)]
        with pytest.raises(NotSentError, match=str(code)) as caught:
            await update()
        assert caught.value.retry_after_seconds == 7
        assert not other.posts
        await update()
        assert len(server.posts) == 2


async def test_who_is_not_there_has_certainly_heard_nothing() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        port = taken.getsockname()[1]

        async def scene() -> None:
            async with telling(f"http://user:s3cret@127.0.0.1:{port}/s3cret") as update:
                with pytest.raises(NotSentError) as caught:
                    await update()
                assert (
                    str(caught.value)
                    == f"cannot connect to http://127.0.0.1:{port}: connection refused"
                )
                assert "s3cret" not in str(caught.value)
            async with telling("http://no-such-host.invalid/") as update:
                with pytest.raises(NotSentError, match=r"no-such-host\.invalid"):
                    await update()

        await scene()


async def test_who_hangs_up_or_says_nothing_may_have_heard_it() -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def silent(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    async with web_server() as server, telling(server.url) as update:
        server.answers = [hang_up]
        with pytest.raises(RetryableError) as caught:
            await update()
        assert not isinstance(caught.value, NotSentError)
    async with web_server() as server, telling(server.url, timeout="2s") as update:
        server.answers = [silent]
        with pytest.raises(RetryableError, match=r"no response from .* in 2 s") as caught:
            await update()
        assert not isinstance(caught.value, NotSentError)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: zz\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
        b"HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"",
    ],
)
async def test_a_peer_that_speaks_no_http_is_reported_in_one_line_without_the_secret(
    answer: bytes,
) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, telling(f"http://me:s3cret@{host}/s3cret?token=s3cret") as update:
        with pytest.raises(RetryableError, match=f"^no response from http://{host}: ") as got:
            await update()
    said = str(got.value)
    assert "s3cret" not in said
    assert said.isprintable()
    assert len(said) < 300


@pytest.mark.parametrize("code", [400, 401, 503])
async def test_a_receiver_that_quotes_the_request_gets_no_secret_shown(
    tmp_path: Path, code: int
) -> None:
    token = a_secret(tmp_path, "t0ken-0123456789-abcdefgh")
    key = tmp_path / "key"
    key.write_text("between us")
    key.chmod(0o600)
    sent: list[str] = []

    async def quote(request: web.Request) -> web.StreamResponse:
        sent.extend((request.headers["authorization"], request.headers["webhook-signature"]))
        return web.Response(status=code, text=f"{request.path_qs} with {' '.join(sent[-2:])}")

    files = {"tokenFile": str(token), "secretFile": str(key)}
    async with (
        web_server() as server,
        telling(f"{server.url}/hooks/T0123456789/x?key=s3cret", **files) as update,
    ):
        server.answers = [quote]
        with pytest.raises(ActionError) as caught:
            await update()
    said = str(caught.value)
    assert said.endswith("/hooks/<redacted>/x?key=<redacted> with Bearer <redacted> v1,<redacted>")


async def test_a_password_that_is_quoted_is_redacted_in_both_of_its_forms() -> None:
    async def quote(request: web.Request) -> web.StreamResponse:
        return web.Response(status=403, text=f"{request.headers['authorization']} pass%77ord")

    async with (
        web_server() as server,
        telling(server.url.replace("://", "://me:pass%77ord@")) as update,
    ):
        server.answers = [quote]
        with pytest.raises(NotSentError, match=r"Basic <redacted> <redacted>$"):
            await update()


@pytest.mark.parametrize("length", [64, pytest.param(3_000, marks=pytest.mark.slow)])
async def test_a_token_that_is_cut_by_what_is_read_leaves_nothing_of_it(
    tmp_path: Path, length: int
) -> None:
    token = a_secret(tmp_path, ("0123456789abcdef" * length)[:length])

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=401)
        await response.prepare(request)
        text = (request.headers["authorization"].removeprefix("Bearer ") * 100)[: 2048 - 3]
        await response.write(b"no " + text[:5].encode())
        await asyncio.sleep(0.01)
        await response.write(text[5:].encode() + b"012")
        await asyncio.sleep(30)
        return response

    async with web_server() as server, telling(server.url, tokenFile=str(token)) as update:
        server.answers = [drip]
        with pytest.raises(NotSentError, match=r"Unauthorized: no <redacted>$"):
            await update()


async def test_an_answer_that_is_no_http_and_quotes_the_token_is_redacted(tmp_path: Path) -> None:
    token = a_secret(tmp_path, "t0ken-0123456789-abcdefgh")

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 t0ken-0123456789-abcdefgh\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, telling(f"http://{host}/", tokenFile=str(token)) as update:
        with pytest.raises(RetryableError, match="no response") as caught:
            await update()
    assert "t0ken" not in str(caught.value)


async def test_an_endless_answer_is_not_read() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65536)

    async with web_server() as server, telling(server.url) as update:
        server.answers = [endless]
        await asyncio.wait_for(update(), 5)


async def test_an_unknown_certificate_is_not_trusted(tmp_path: Path) -> None:
    authority, tls = serving_tls(tmp_path)
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("none")

    async with web_server(tls) as server:
        async with telling(server.url) as update:
            with pytest.raises(NotSentError, match="certificate"):
                await update()
        async with telling(server.url, caFile=str(wrong)) as update:
            with pytest.raises(NotSentError, match="does not contain certificates"):
                await update()
        async with telling(server.url, caFile=authority) as update:
            await update()
        assert len(server.posts) == 1


async def test_a_body_is_bounded() -> None:
    many = {f"note-{number}": "x" * 4096 for number in range(100)}
    async with web_server() as server, telling(server.url) as update:
        await update(firing(annotations=many))
    (post,) = server.posts
    assert len(post.body) < MAX_BODY_BYTES
    assert (post.json()["annotations"], post.json()["truncated"]) == ({}, True)


@pytest.mark.parametrize("url", ["", "ftp://host/", "https://", "http://[", "no address"])
async def test_what_is_no_address_is_refused_for_good(url: str) -> None:
    async with telling(url) as update:
        with pytest.raises(ActionError, match="url") as caught:
            await update()
        assert not isinstance(caught.value, RetryableError)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("", 0.0),
        ("12", 12.0),
        ("-3", 0.0),
        ("nan", 0.0),
        ("inf", 3600.0),
        ("99999", 3600.0),
        ("soon", 0.0),
        ("Fri, 01 Jan 2100 00:00:40 GMT", 40.0),
        ("Thu, 31 Dec 2099 00:00:00 GMT", 0.0),
        ("Fri, 01 Jan 99999999999 00:00:00 GMT", 0.0),
    ],
)
def test_how_long_a_server_wants_to_be_left_alone(header: str, seconds: float) -> None:
    assert retry_after(header, START) == seconds


def serving_tls(folder: Path) -> tuple[str, ssl.SSLContext]:
    """The certificate of an authority, and a server's context with one of its own."""
    pair = authority().pair("hook")
    (folder / "ca.crt").write_bytes(authority().pem)
    (folder / "hook.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "hook.pem")
    return str(folder / "ca.crt"), context
