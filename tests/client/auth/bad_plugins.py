"""Exec plugins that are of no use, and what is said about each."""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.client.auth.plugins import V1, V1BETA1, Plugin, answer
from tests.support.certificates import authority

SECRET = "eyJhbGciOi.s3cr3t-that-must-not-show"  # noqa: S105 - of these tests


class Case(NamedTuple):
    """A plugin, and a pattern for the error message."""

    name: str
    made: Callable[[Plugin], Plugin]
    message: str
    fields: Mapping[str, Any] = MappingProxyType({})
    seconds: float = 20.0


def prints(text: str | bytes) -> Callable[[Plugin], Plugin]:
    return lambda plugin: plugin.prints(text)


def says(**status: Any) -> Callable[[Plugin], Plugin]:
    return prints(json.dumps(answer(**status)))


def does(body: str) -> Callable[[Plugin], Plugin]:
    return lambda plugin: plugin.program(body)


def complains(line: str, code: int = 1) -> Callable[[Plugin], Plugin]:
    return does(f"print({SECRET!r}); sys.stderr.write({line!r}); sys.exit({code})")


def no_program(plugin: Plugin) -> Plugin:
    return plugin


def not_executable(plugin: Plugin) -> Plugin:
    plugin.program("").path.chmod(0o644)
    return plugin


def no_format(plugin: Plugin) -> Plugin:
    plugin.path.write_bytes(b"\x7fELF but not really")
    plugin.path.chmod(0o755)
    return plugin


_PAIR = authority().pair("me")
_OTHER = authority().pair("you")

CASES = [
    Case("not there", no_program, "was not found; install it, or correct `command`"),
    Case("with a hint", no_program, "was not found; brew it", {"installHint": "brew\nit"}),
    Case(
        "not on the PATH",
        no_program,
        "exec plugin nix-da was not found on the PATH; inst",
        {"command": "nix-da"},
    ),
    Case("not executable", not_executable, "is not executable; make it executable"),
    Case("no program", no_format, r"cannot be run \(Exec format error\); install it"),
    Case(
        "fails",
        complains("first\nplease log in\n\n"),
        r"failed with exit code 1 \(please log in\); run it",
    ),
    Case("fails silently", does("sys.exit(3)"), "failed with exit code 3; run it manually"),
    Case("fails with a secret", complains(f"token={SECRET} is bad"), r"\(token=… is bad\)"),
    Case("fails with a bare secret", complains(f"got {SECRET}"), r"code 1 \(got …\)"),
    Case("fails with colours", complains("\x1b[31mno\x1b[0m\r"), r"\(\[31mno \[0m\)"),
    Case(
        "fails at length",
        complains("so sorry " * 1_000),
        r"\(.*(so sorry ){30}.*…\); run it manually",
    ),
    Case("fails in no language", complains("\udcff", 2), r"exit code 2 \(.*\)"),
    Case("is killed", does("os.kill(os.getpid(), 9)"), "was killed by signal 9; run it manually"),
    Case(
        "hangs",
        does("import time; time.sleep(600)"),
        "did not exit within 0.5 s and was killed; run it",
        {},
        0.5,
    ),
    Case("prints nothing", prints(""), "failed: it printed nothing; run it manually"),
    Case("prints words", prints(f"Your token is {SECRET}"), "it printed no JSON"),
    Case("prints half", prints(json.dumps(answer(token=SECRET))[:-3]), "it printed no JSON"),
    Case("prints two", prints(json.dumps(answer(token=SECRET)) * 2), "it printed no JSON"),
    Case("prints noise", does("os.write(1, bytes(range(256)) * 40)"), "it printed no JSON"),
    Case("prints depths", prints('{"a":' + "[" * 10_000), "it printed no JSON"),
    Case("prints a list", prints(f'["{SECRET}"]'), "an object that is not an ExecCredential"),
    Case(
        "prints without end",
        does("while True: os.write(1, b'x' * 65536)"),
        "did not exit within",
        {},
        0.5,
    ),
    Case("prints too much", does("os.write(1, b' ' * 2**21)"), "printed more than 1 MiB"),
    Case(
        "another kind",
        prints(json.dumps(answer(token=SECRET) | {"kind": "Pod"})),
        "not an ExecCredential",
    ),
    Case(
        "another version",
        prints(json.dumps(answer(V1BETA1, token=SECRET))),
        f"is not of {V1}; set",
    ),
    Case("no version", prints(json.dumps({"kind": "ExecCredential"})), f"is not of {V1}"),
    Case(
        "no status",
        prints(json.dumps({"apiVersion": V1, "kind": "ExecCredential"})),
        "has no status",
    ),
    Case("nothing in it", says(), "has neither a token nor a certificate"),
    Case("an empty token", says(token=""), "has neither a token nor a certificate"),
    Case(
        "a token of two lines",
        says(token=f"{SECRET}\nX-Evil: 1"),
        "its token has invalid characters",
    ),
    Case("a number as token", says(token=12345), "an object that is not an ExecCredential"),
    Case(
        "a bad time",
        says(token=SECRET, expirationTimestamp=SECRET),
        "expirationTimestamp is not a valid time",
    ),
    Case("half a pair", says(clientKeyData=SECRET), "a certificate or a key, but not both"),
    Case(
        "a bad pair",
        says(clientCertificateData=SECRET, clientKeyData=SECRET),
        "its clientCertificateData has no",
    ),
    Case(
        "a pair of two",
        says(clientCertificateData=_PAIR.certificate.decode(), clientKeyData=_OTHER.key.decode()),
        "its clientKeyData is not the key of its clientCertificateData",
    ),
]
