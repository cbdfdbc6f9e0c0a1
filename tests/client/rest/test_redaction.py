"""A server that repeats the client's credentials: no error message contains them."""

import asyncio
import base64
import json
import traceback

import pytest

pytest.importorskip("aiohttp", reason="needs podstatus[agent]")

from podstatus.client.api_client import ApiClient
from podstatus.client.rest.redaction import authorization_secrets, redact_secrets
from podstatus.client.rest.resources import PODS
from podstatus.kube.api_errors import ApiError
from tests.client.raw_server import answer, raw_server
from tests.support.plain_access import PlainAccess

TOKEN = "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.c29tZS1wYXlsb2Fk.x-y_z"  # noqa: S105
HUGE = TOKEN + "A" * 100_000


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"bad token {TOKEN}!", "bad token …!"),
        (TOKEN, "…"),
        (f"starts {TOKEN[:20]}...", "starts …..."),
        (f"ends {TOKEN[-20:]} in", "ends … in"),
        (f"{TOKEN[:10]} and {TOKEN[9:30]}", "… and …"),
        (f"twice {TOKEN}{TOKEN}", "twice ……"),
        (f"few {TOKEN[:7]}", f"few {TOKEN[:7]}"),
        ("nothing of it", "nothing of it"),
        ("", ""),
    ],
)
def test_no_part_of_a_token_is_shown(text: str, shown: str) -> None:
    assert redact_secrets(text, (TOKEN,)) == shown


def test_short_secrets_are_left_out_as_a_whole() -> None:
    assert redact_secrets("it is s3cret here", ("s3cret",)) == "it is … here"
    assert redact_secrets("an odd one", ("o",)) == "an odd one"


def test_nothing_is_shown_to_which_a_token_of_no_use_was_sent() -> None:
    assert redact_secrets("whatever it says", (HUGE,)) == "…"


@pytest.mark.parametrize(
    ("header", "secrets"),
    [
        (None, ()),
        ("Bearer abc", ("abc",)),
        ("Basic " + base64.b64encode(b"me:hunter2").decode(), ("bWU6aHVudGVyMg==", "hunter2")),
        ("Basic ???", ("???",)),
    ],
)
def test_what_is_secret_of_a_header(header: str | None, secrets: tuple[str, ...]) -> None:
    assert authorization_secrets(header) == secrets


def refused(body: bytes) -> bytes:
    return answer(body, "400 No")


def status(**fields: object) -> bytes:
    return json.dumps({"kind": "Status", "code": 400, **fields}).encode()


STORIES = {
    "in the message of a Status": refused(status(message=f"no {TOKEN}", reason="BadRequest")),
    "in the reason": refused(status(message="no", reason=TOKEN)),
    "in a message of megabytes": refused(status(message=f"x {TOKEN} " * 100_000)),
    "in a text": refused(f"Got more than 8190 bytes when reading: b'{TOKEN[:40]}'".encode()),
    "in a line that is no HTTP": f"{TOKEN}\r\n\r\n".encode(),
    "in a header that is none": f"HTTP/1.1 200 OK\r\n{TOKEN}\r\n\r\n".encode(),
    "in a header that is too long": f"HTTP/1.1 200 OK\r\nA: {TOKEN * 1000}\r\n\r\n".encode(),
    "in the reason of the line": f"HTTP/1.1 400 {TOKEN}\r\nContent-Length: 0\r\n\r\n".encode(),
    "in an event of a watch": answer(
        b'{"type":"ERROR","object":' + status(message=f"no {TOKEN}") + b"}\n"
    ),
}


@pytest.mark.parametrize("said", STORIES.values(), ids=list(STORIES))
async def test_what_a_server_repeats_is_in_no_error(said: bytes) -> None:
    async def say(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)

    async with raw_server(say) as server, ApiClient(PlainAccess(server, TOKEN)) as client:
        if b'"ERROR"' not in said:
            with pytest.raises(ApiError) as one:
                await client.get(PODS, "a", namespace="b")
            assert_harmless(one.value)
        with pytest.raises(ApiError) as other:
            async with client.watch(PODS) as events:
                await anext(events)
        assert_harmless(other.value)


def assert_harmless(error: BaseException) -> None:
    shown = "".join(traceback.format_exception(error))
    assert not any(TOKEN[at : at + 8] in shown for at in range(len(TOKEN) - 8))
    assert len(shown) < 20_000
