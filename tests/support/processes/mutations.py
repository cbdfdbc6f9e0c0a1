"""What a hostile server makes of a true answer: seeded, so that a run can be repeated."""

import gzip
import json
from collections.abc import Callable
from random import Random
from typing import Any

LONG = "x" * 100_000
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 1e308, 0.5),
    *("", " ", "x", "0", "-1", "null", "..", "a/b", "\0", "é", "\ud800", LONG, "9" * 5000),
    *("9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "2024-01-01T00:00:00Z", "NaN"),
    *([], {}, [None], [[]], [{}], {"": None}, {"name": None}, [1, 2, 3], ["a", "a"]),
)
"""That take the place of a field, whatever it was."""
NAMES = ("uid", "name", "namespace", "resourceVersion", "kind", "metadata", "spec", "status")
"""Of fields that matter more than others."""


def mutated(document: Any, random: Random) -> bytes:
    """The document with one field changed, gone, repeated or nested."""
    places = list(_places(document))
    if not places:
        return encoded(random.choice(VALUES))
    named = [place for place in places if place[1] in NAMES]
    holder, key = random.choice(named if named and random.random() < 0.5 else places)
    match random.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.extend([holder[key]] * random.choice((1, 100)))
        case 2:
            holder[key] = _deep(random.choice((50, 2000)), holder[key])
        case _:
            holder[key] = random.choice(VALUES)
    return encoded(document)


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _deep(levels: int, value: Any) -> Any:
    made = value
    for _ in range(min(levels, 300)):
        made = [made] if levels % 100 else {"a": made}
    return made


def _places(value: Any) -> Any:
    stack = [value]
    while stack:
        holder = stack.pop()
        keys = holder if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            yield holder, key
            if isinstance(holder[key], dict | list):
                stack.append(holder[key])


def _head(code: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {code}", *headers, "", ""]).encode("utf-8", "surrogatepass")


def whole(body: bytes, code: str = "200 OK", *headers: str) -> bytes:
    """An answer that ends its connection."""
    kind = (
        () if any("Content-Type" in it for it in headers) else ("Content-Type: application/json",)
    )
    return _head(code, f"Content-Length: {len(body)}", "Connection: close", *kind, *headers) + body


def _status(code: int, **fields: Any) -> bytes:
    return json.dumps({"kind": "Status", "apiVersion": "v1", "code": code, **fields}).encode()


def _busy(after: object) -> bytes:
    return whole(_status(429, details={"retryAfterSeconds": after}), "429 Too Many Requests")


RAW: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: whole(b""),
    "null": lambda _: whole(b"null"),
    "a list": lambda _: whole(b"[]"),
    "a text": lambda _: whole(b'"x"'),
    "an empty object": lambda _: whole(b"{}"),
    "a Status of success": lambda _: whole(_status(200, status="Success", metadata={})),
    "cut": lambda body: whole(body[: len(body) // 2]),
    "cut short": lambda body: whole(body)[:-7],
    "twice": lambda body: whole(body + body),
    "no UTF-8": lambda body: whole(body.replace(b"e", b"\xff")),
    "a page": lambda _: whole(b"<html>", "200 OK", "Content-Type: text/html"),
    "protobuf": lambda b: whole(b, "200 OK", "Content-Type: application/vnd.kubernetes.protobuf"),
    "an odd type": lambda body: whole(body, "200 OK", "Content-Type: ;;;=\x01"),
    "an odd charset": lambda body: whole(
        body, "200 OK", "Content-Type: application/json; charset=x"
    ),
    "no gzip": lambda body: whole(body, "200 OK", "Content-Encoding: gzip"),
    "an odd encoding": lambda body: whole(body, "200 OK", "Content-Encoding: compress"),
    "gzip": lambda body: whole(gzip.compress(body), "200 OK", "Content-Encoding: gzip"),
    "deep": lambda _: whole(b"[" * 100_000 + b"]" * 100_000),
    "deep metadata": lambda _: whole(b'{"metadata":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001),
    "code 0": lambda body: whole(body, "000 None"),
    "code 999": lambda body: whole(body, "999 Many"),
    "code 199": lambda body: whole(body, "199 Odd"),
    "code 204": lambda _: whole(b"", "204 No Content"),
    "code 304": lambda _: whole(b"", "304 Not Modified"),
    "a redirect": lambda _: whole(b"", "302 Found", "Location: http://127.0.0.1:1/"),
    "a redirect to nowhere": lambda _: whole(b"", "308 On", "Location: \x7f::"),
    "gone": lambda _: whole(_status(410, reason="Expired"), "410 Gone"),
    "not found": lambda _: whole(_status(404, reason="NotFound"), "404 Not Found"),
    "conflict": lambda _: whole(_status(409, reason="Conflict"), "409 Conflict"),
    "invalid": lambda _: whole(_status(422, reason="Invalid", details={"causes": [{}]}), "422 No"),
    "denied": lambda _: whole(_status(403, reason="Forbidden"), "403 Forbidden"),
    "unknown": lambda _: whole(_status(401, reason="Unauthorized"), "401 Unauthorized"),
    "busy for a year": lambda _: _busy(31_536_000),
    "busy for less than nothing": lambda _: _busy(-5),
    "busy for ever": lambda _: _busy(1e308),
    "busy for a text": lambda _: _busy("NaN"),
    "busy by header": lambda _: whole(b"", "429 Busy", "Retry-After: -1"),
    "busy by a long header": lambda _: whole(b"", "503 Busy", "Retry-After: " + "9" * 4000),
    "a failure": lambda _: whole(b"", "500 Oh"),
    "a long failure": lambda _: whole(b'{"message":"' + LONG.encode() * 30 + b'"}', "500 Oh"),
    "no HTTP": lambda _: b"\x00\x01\x02 nonsense\r\n\r\n",
    "a huge header": lambda body: _head("200 OK", "A: " + LONG) + body,
    "many headers": lambda body: _head("200 OK", *(f"A{n}: b" for n in range(5000))) + body,
    "two lengths": lambda body: _head("200 OK", "Content-Length: 1", "Content-Length: 2") + body,
    "a negative length": lambda body: _head("200 OK", "Content-Length: -1") + body,
    "a huge length": lambda body: _head("200 OK", f"Content-Length: {10**18}") + body,
    "odd chunks": lambda body: _head("200 OK", "Transfer-Encoding: chunked") + b"zz\r\n" + body,
    "a huge chunk": lambda b: _head("200 OK", "Transfer-Encoding: chunked") + b"fffffffff\r\n" + b,
    "continue": lambda body: b"HTTP/1.1 100 Continue\r\n\r\n" * 2000 + whole(body),
    "switching": lambda _: _head("101 Switching Protocols", "Upgrade: x", "Connection: upgrade"),
    "an odd date": lambda body: whole(body, "200 OK", "Date: Fri, 99 Foo 99999 99:99:99 GMT"),
}
"""Answers that are no answers, by what is wrong."""

LINES: dict[str, Callable[[bytes], bytes]] = {
    "a blank line": lambda line: b"\n\n" + line,
    "no event": lambda _: b"null\n",
    "no JSON": lambda _: b"{nonsense\n",
    "no UTF-8": lambda line: line.replace(b"a", b"\xff"),
    "cut": lambda line: line[: len(line) // 2] + b"\n",
    "twice": lambda line: line * 2,
    "an unknown type": lambda _: b'{"type":"FOO","object":{}}\n',
    "a type that is none": lambda _: b'{"type":1,"object":{}}\n',
    "an object that is none": lambda _: b'{"type":"ADDED","object":1}\n',
    "an empty object": lambda _: b'{"type":"MODIFIED","object":{}}\n',
    "an empty deletion": lambda _: b'{"type":"DELETED","object":{}}\n',
    "bookmarks": lambda line: b'{"type":"BOOKMARK","object":{"metadata":{}}}\n' * 1000 + line,
    "an odd bookmark": lambda _: b'{"type":"BOOKMARK","object":null}\n',
    "a negative bookmark": lambda _: (
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"-9"}}}\n'
    ),
    "a huge bookmark": lambda _: (
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"' + b"9" * 39 + b'"}}}\n'
    ),
    "expired": lambda _: b'{"type":"ERROR","object":{"kind":"Status","code":410}}\n',
    "an odd error": lambda _: b'{"type":"ERROR","object":null}\n',
    "an error of no code": lambda _: b'{"type":"ERROR","object":{"code":-1,"message":7}}\n',
    "an error of success": lambda _: b'{"type":"ERROR","object":{"code":200}}\n',
    "deep": lambda _: b'{"type":"ADDED","object":' + b"[" * 50_000 + b"]" * 50_000 + b"}\n",
    "a long line": lambda line: b'{"x":"' + b"x" * (1 << 20) + b'",' + line[1:],
}
"""What may be in the place of an event."""
