"""HTTP checks against real servers on loopback."""

import ssl
from pathlib import Path

import pytest

from podstatus.probes.check_http import check_http
from podstatus.probes.decide.check_result import MAX_OUTPUT_BYTES, CheckError, CheckResult
from podstatus.probes.decide.http_target import HttpTarget
from podstatus.probes.resolver import HostResolver
from tests.support.certificates import DAY, self_signed
from tests.support.loopback_servers import HOST, closed_port, deaf_port, http, raw_server

SECONDS = 30.0
SOON = 0.1
IN_TIME = 1.0
"""For what a busy machine has to manage first."""


async def check(url: str, *headers: tuple[str, str], seconds: float = SECONDS) -> CheckResult:
    return await check_http(
        HttpTarget(url=url, headers=headers), seconds=seconds, resolver=HostResolver()
    )


@pytest.mark.parametrize(
    ("status", "success"),
    [(200, True), (204, True), (299, True), (400, False), (404, False), (500, False), (599, False)],
)
async def test_status_decides(status: int, success: bool) -> None:
    body = b"" if status == 204 else b"secret"
    async with raw_server(http(status, body)) as server:
        checked = await check(server.url)
    output = body.decode() if success else f"HTTP probe failed with statuscode: {status}"
    assert checked == CheckResult(success=success, output=output)


async def test_request_is_what_the_target_says_and_nothing_is_added() -> None:
    async with raw_server(http(200)) as server:
        url = f"http://{HOST}:{server.port}/a%20b?c=%2F"
        await check(url, ("User-Agent", "kube-probe/1.36"), ("X-A", "1"), ("X-A", "2"))
        assert server.asked == [
            (
                f"GET /a%20b?c=%2F HTTP/1.1\r\nHost: {HOST}:{server.port}\r\n"
                "User-Agent: kube-probe/1.36\r\nX-A: 1\r\nX-A: 2\r\nConnection: close\r\n\r\n"
            )
        ]
        await check(url, ("Host", "example.test"))
        assert "Host: example.test\r\n" in server.asked[1]
        assert server.asked[1].count("Host:") == 1


async def test_long_body_is_cut() -> None:
    async with raw_server(http(200, b"x" * 50_000)) as server:
        assert await check(server.url) == CheckResult(success=True, output="x" * MAX_OUTPUT_BYTES)


async def test_headers_may_be_long() -> None:
    async with raw_server(http(200, b"ok", f"X-Long: {'x' * 30_000}")) as server:
        assert (await check(server.url)).success


@pytest.mark.parametrize("location", ["http://host:port/", "http://[bad", "http://a:99999999/"])
async def test_a_location_that_is_no_url_is_ignored_without_a_redirect(location: str) -> None:
    async with raw_server(http(200, b"ok", f"Location: {location}")) as server:
        assert await check(server.url) == CheckResult(success=True, output="ok")


async def test_redirects_on_the_same_host_are_followed() -> None:
    other = ""

    def answer(path: str) -> bytes:
        places = {"/": "/second", "/second": f"{other}third"}
        return http(302, b"", f"Location: {places[path]}") if path in places else http(200, b"ok")

    async with raw_server(answer) as first, raw_server(http(200, b"other port")) as second:
        other = second.url
        checked = await check(first.url, ("Host", "name.test"), ("X-A", "1"))
        assert checked == CheckResult(success=True, output="other port")
        assert "Host: name.test" in first.asked[1]
        assert f"Host: {HOST}:{second.port}\r\n" in second.asked[0]
        assert "X-A: 1" in second.asked[0]


@pytest.mark.parametrize(
    "answer",
    [
        http(302, b"look there", "Location: http://example.test/"),
        http(301, b"look there"),
        http(304),
        http(300, b"look there", "Location: /elsewhere"),
    ],
)
async def test_redirect_that_is_not_followed_is_a_doubtful_success(answer: bytes) -> None:
    async with raw_server(answer) as server:
        checked = await check(server.url)
        assert len(server.asked) == 1
    assert (checked.success, checked.warning) == (True, True)
    assert checked.output.startswith("Probe terminated redirects, Response body: ")


async def test_redirects_without_end_have_failed() -> None:
    async with raw_server(http(302, b"", "Location: /again")) as server:
        checked = await check(server.url)
        assert len(server.asked) == 10
    output = f'Get "{server.url}again": stopped after 10 redirects'
    assert checked == CheckResult(success=False, output=output)


async def test_a_refused_connection_is_a_failure() -> None:
    port = closed_port()
    url = f"http://{HOST}:{port}/"
    output = f'Get "{url}": dial tcp {HOST}:{port}: connect: connection refused'
    assert await check(url) == CheckResult(success=False, output=output)


async def test_server_that_never_answers_has_failed() -> None:
    async with raw_server(b"", hangs=True) as server:
        checked = await check(server.url, seconds=SOON)
        output = (
            f'Get "{server.url}": context deadline exceeded '
            "(Client.Timeout exceeded while awaiting headers)"
        )
        assert checked == CheckResult(success=False, output=output)
    async with deaf_port() as port:
        assert not (await check(f"http://{HOST}:{port}/", seconds=SOON)).success


@pytest.mark.parametrize(
    "garbage", [b"", b"hello\r\n\r\n", b"HTTP/1.1 two hundred\r\n\r\n", b"\0" * 99]
)
async def test_what_is_no_http_has_failed(garbage: bytes) -> None:
    async with raw_server(garbage) as server:
        checked = await check(server.url)
    assert not checked.success
    assert checked.output.startswith(f'Get "{server.url}": ')


@pytest.mark.parametrize("hangs", [True, False])
async def test_answer_that_breaks_off_says_nothing(hangs: bool) -> None:
    part = http(200, b"x" * 10)[:-5]
    async with raw_server(part, hangs=hangs) as server:
        with pytest.raises(CheckError) as caught:
            await check(server.url, seconds=IN_TIME)
    assert caught.value.state == "failure"
    assert not hangs or "while reading body" in str(caught.value)


async def test_header_that_cannot_be_sent_has_failed() -> None:
    async with raw_server(http(200)) as server:
        assert not (await check(server.url, ("X-A", "1\r\nX-B: 2"))).success
        assert server.asked == []


async def test_certificates_are_not_verified(tmp_path: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    expired = self_signed("unknown.test", lasts=-DAY)
    pem = tmp_path / "server.pem"
    pem.write_bytes(expired.key + expired.certificate)
    tls.load_cert_chain(pem)
    async with raw_server(http(200, b"ok"), tls=tls) as server:
        checked = await check(f"https://{HOST}:{server.port}/")
    assert checked == CheckResult(success=True, output="ok")


async def test_proxies_of_the_node_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://{HOST}:{closed_port()}")
    async with raw_server(http(200)) as server:
        assert (await check(server.url)).success


async def test_host_may_be_a_name_and_an_unknown_name_fails() -> None:
    async with raw_server(http(200)) as server:
        assert (await check(f"http://localhost:{server.port}/")).success
    checked = await check("http://unknown.invalid:80/")
    assert not checked.success
    assert "dial tcp: lookup unknown.invalid: " in checked.output


async def test_body_is_taken_as_it_comes() -> None:
    async with raw_server(http(200, b"no gzip", "Content-Encoding: gzip")) as server:
        assert await check(server.url) == CheckResult(success=True, output="no gzip")
