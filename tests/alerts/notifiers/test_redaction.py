"""Secrets are redacted in the text of another process."""

import base64
import html
import json
import random
import string
from urllib.parse import quote

import pytest

from podstatus.alerts.notifiers.messages.redaction import REDACTED, Redactor

TOKEN = "T0ken+with/odd=chars&<more>-0123456789"  # noqa: S105 - of no server
SHOWN = Redactor([TOKEN])


def percent_all(text: str) -> str:
    return "".join(f"%{ord(char):02x}" for char in text)


ECHOES = {
    "as it was sent": TOKEN,
    "in another case": TOKEN.upper(),
    "percent-encoded": quote(TOKEN, safe=""),
    "percent-encoded twice": quote(quote(TOKEN, safe=""), safe=""),
    "percent-encoded as a whole": percent_all(TOKEN),
    "in JSON": json.dumps({"got": f"Bearer {TOKEN}"}),
    "in JSON, slashes escaped": json.dumps(TOKEN).replace("/", "\\/"),
    "in JSON, all escaped": "".join(f"\\u{ord(char):04X}" for char in TOKEN),
    "in JSON in JSON": json.dumps(json.dumps(TOKEN)),
    "in HTML": html.escape(TOKEN),
    "in HTML, by numbers": "".join(f"&#{ord(char)};" for char in TOKEN),
    "in HTML, by hex numbers": "".join(f"&#x{ord(char):x};" for char in TOKEN),
    "in base64": base64.b64encode(TOKEN.encode()).decode(),
    "in base64 with its header": base64.b64encode(f"Bearer {TOKEN}!".encode()).decode(),
    "in base64 with more": base64.b64encode(f"x: Bearer {TOKEN}!!".encode()).decode(),
    "in base64 for URLs": base64.urlsafe_b64encode(f"??>{TOKEN}".encode()).decode(),
    "in base64 in a URL": quote(base64.b64encode(TOKEN.encode()).decode(), safe=""),
    "in hex": TOKEN.encode().hex().upper(),
    "in lines": "\n".join(TOKEN[at : at + 5] for at in range(0, len(TOKEN), 5)),
    "in UTF-16": TOKEN.encode("utf-16-le").decode(),
    "with unseen characters": "\u200b".join(TOKEN),
    "its end alone": TOKEN[-12:],
    "its beginning alone": TOKEN[:12],
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_a_secret_is_redacted_in_every_form(echo: str) -> None:
    shown = SHOWN.redact(f"401: <{echo}> is wrong")
    assert shown.startswith("401: ")
    assert shown.endswith(" is wrong")
    assert REDACTED in shown
    # Of all of it no more than what stands beside the token: `{"got": "Bearer "}`.
    assert len(shown.replace(REDACTED, "")) <= len("401: <> is wrong") + 20


@pytest.mark.parametrize("encode", [str, percent_all, lambda it: quote(it, safe="")])
def test_a_cut_leaves_no_beginning_of_a_secret(encode: object) -> None:
    assert callable(encode)
    for length in range(1, len(encode(TOKEN)) + 1):
        shown = SHOWN.redact(f"no: {encode(TOKEN)[:length]}", is_cut=True)
        assert shown in ("no: ", f"no: {REDACTED}")


def test_other_text_stays_as_it_is() -> None:
    said = 'quota of 5 %: {"error": "a \\"b\\" & c", "path": "C:\\\\x"} 100%25'
    assert SHOWN.redact(said) == said
    assert Redactor(["", ""]).redact(said) == said


def test_a_short_secret_is_redacted_as_a_whole() -> None:
    assert Redactor(["t-1"]).redact("token t-1 has expired") == f"token {REDACTED} has expired"


def test_no_run_of_a_secret_is_left_however_it_is_mixed() -> None:
    chance = random.Random(19)
    forms = (str, quote, percent_all, html.escape, lambda it: json.dumps(it)[1:-1])
    for _ in range(200):
        token = "".join(chance.choices(string.ascii_letters + "+/=%&\\\"<'-_", k=24))
        echo = "".join(chance.choice(forms)(char) for char in token)
        shown = Redactor([token]).redact(f"a {echo} b")
        assert len(shown.replace(REDACTED, "")) <= len("a  b") + 7, (token, echo, shown)
