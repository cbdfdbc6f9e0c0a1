"""Kubeconfigs that cannot be used, and what is said about each."""

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.client.kubeconfigs import data, document, write
from tests.support.certificates import Pair, authority

SECRET = "s3cr3t-that-must-not-show"  # noqa: S105 - of these tests

Write = Callable[[Path], Path]


class Case(NamedTuple):
    """A kubeconfig, and a pattern for the error message."""

    name: str
    write: Write
    message: str


def text(content: str | bytes) -> Write:
    def written(folder: Path) -> Path:
        path = folder / "config"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


def config(**changes: Any) -> Write:
    """Return the valid kubeconfig with other top-level fields."""
    return lambda folder: write(folder / "config", document() | changes)


def cluster(**fields: Any) -> Write:
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    return lambda folder: write(folder / "config", cluster=named, user={"token": SECRET})


def user(**fields: Any) -> Write:
    named = {
        name if name == "tokenFile" else name.replace("_", "-").removeprefix("-"): value
        for name, value in fields.items()
    }
    return lambda folder: write(folder / "config", user=named)


def plugin(**fields: Any) -> Write:
    good = {
        "command": "login",
        "apiVersion": "client.authentication.k8s.io/v1",
        "interactiveMode": "Never",
    }
    return user(exec=good | fields)


def pair(certificate: bytes, key: bytes) -> Write:
    return user(client_certificate_data=data(certificate), client_key_data=data(key))


def folder_instead(folder: Path) -> Path:
    (folder / "config").mkdir()
    return folder / "config"


def with_context(**fields: str) -> Write:
    good = {"cluster": "kind", "user": "me"}
    return config(contexts=[{"name": "dev", "context": good | fields}])


def twice(kind: str) -> Write:
    return config(**{f"{kind}s": document()[f"{kind}s"] * 2})


def key_file_of_another(folder: Path) -> Path:
    good, other = authority().pair("me"), authority().pair("you")
    (folder / "me.crt").write_bytes(good.certificate)
    (folder / "me.key").write_bytes(other.key)
    return user(client_certificate="me.crt", client_key="me.key")(folder)


_GOOD = authority().pair("me")
_OTHER = authority().pair("you")
_LOCKED: Pair = authority().pair("me", password=b"password")
_EXPIRED = authority().pair("me", lasts=-datetime.timedelta(days=3))
_DAMAGED = _GOOD.key.replace(_GOOD.key.split(b"\n")[1][:20], b"A" * 20)
_BOMB = "a: &a [x, x]\n" + "".join(
    f"{after}: &{after} [*{before}, *{before}, *{before}]\n"
    for before, after in zip("abcdefghijklmnop", "bcdefghijklmnopq", strict=True)
)
_MERGED = "".join(
    f"{n}: &{n} {{<<: [*{p}, *{p}]}}\n" for p, n in zip("abcdef", "bcdefg", strict=True)
)

CASES = [
    Case("missing", lambda folder: folder / "config", "no kubeconfig at .*config; pass"),
    Case("a folder", folder_instead, "cannot read the kubeconfig .*: it is a directory"),
    Case("too large", text(b"#" * (5 * 2**20)), "larger than 4 MiB; pass"),
    Case("empty", text(""), "config has no current-context; .*contexts: none"),
    Case("no text", text(b"\xff\xfe\x00"), "is not UTF-8 text"),
    Case("a control character", text("a: \x01"), "is not valid YAML: correct"),
    Case(
        "no YAML",
        text(f"users: [\ntoken: {SECRET}: {SECRET}"),
        r"is not valid YAML: correct it near line \d",
    ),
    Case(
        "no JSON",
        text(json.dumps(document(user={"token": SECRET}))[:-2]),
        "is not valid YAML: correct",
    ),
    Case("a tab", text(f"users:\n\t- {SECRET}"), "line 2 has a tab; use spaces"),
    Case(
        "two documents",
        text(f"a: 1\n---\ntoken: {SECRET}"),
        "is not valid YAML: correct it near line",
    ),
    Case("an undefined alias", text(f"token: *{SECRET}"), "YAML alias in line 1; replace it"),
    Case(
        "an unknown tag", text(f"token: !{SECRET} x"), "is not valid YAML: correct it near line 1"
    ),
    Case(
        "a python tag", text("a: !!python/object/apply:os.getcwd []"), "is not valid YAML: correct"
    ),
    Case("a bomb", text(_BOMB), "YAML alias in line 2"),
    Case("merge keys", text("a: &a {x: 1}\n" + _MERGED), "YAML alias in line 2"),
    Case("a loop", text("a: &a [*a]"), "YAML alias in line 1"),
    Case("deep", text("[" * 100_000), "is nested too deeply or too large"),
    Case(
        "deep blocks",
        text("".join(f"{' ' * n}a:\n" for n in range(1000))),
        "is nested too deeply or too large",
    ),
    Case("wide", text(f"a: [{'x, ' * 500_000}]"), "is nested too deeply or too large"),
    Case("a list", text("- a\n- b"), "is not a kubeconfig: its top level must be a mapping"),
    Case("a word", text(SECRET), "is not a kubeconfig: its top level must be a mapping"),
    Case("a number", text("1"), "is not a kubeconfig: its top level must be a mapping"),
    Case("another kind", config(kind="Pod"), "apiVersion v1 and kind Config"),
    Case("another version", config(apiVersion="v2"), "apiVersion v1 and kind Config"),
    Case("users as a map", config(users={"me": {"token": SECRET}}), r"expected array.*\$\.users"),
    Case("a token of digits", user(token=12345), r"expected str, got int.*\.token"),
    Case("a list as server", cluster(server=[SECRET]), r"expected str, got array.*\.server"),
    Case("no current context", config(**{"current-context": ""}), "no current-context.*: dev"),
    Case("no such context", config(**{"current-context": "x\ny"}), r'no context "x\\ny".*are: dev'),
    Case(
        "no such cluster", with_context(cluster="x"), 'cluster "x", which does not exist.*are: kind'
    ),
    Case(
        "no such user", with_context(user="x"), 'user "x", which does not exist; its users are: me'
    ),
    Case("no cluster named", with_context(cluster=""), "refers to no cluster; specify one.*: kind"),
    Case("no user named", with_context(user=""), "refers to no user; specify one of its users: me"),
    Case("a bad namespace", with_context(namespace="A/b"), '"A/b" is not a valid namespace'),
    Case("two clusters of a name", twice("cluster"), 'more than one cluster "kind"; remove'),
    Case("two users of a name", twice("user"), 'more than one user "me"; remove or rename'),
    Case("two contexts of a name", twice("context"), 'more than one context "dev"; remove'),
    Case("no server", cluster(server=""), 'cluster "kind": it has no server; set `server`'),
    Case(
        "a server without scheme", cluster(server="10.0.0.1:6443"), "is not a valid URL; .*https://"
    ),
    Case("a server of ftp", cluster(server="ftp://x"), "'ftp://x' is not a valid URL"),
    Case("a bad port", cluster(server="https://x:99999"), "'https://x:99999' is not a valid URL"),
    Case("a server with blanks", cluster(server="https://a b"), "is not a valid URL"),
    Case("a server with a user", cluster(server=f"https://u:{SECRET}@x"), "contains a user"),
    Case("a bad one with a user", cluster(server=f"https//u:{SECRET}@x"), "is not a valid URL"),
    Case("a server with a query", cluster(server=f"https://x?t={SECRET}"), "has a query"),
    Case("no CA file", cluster(certificate_authority="ca.crt"), r"ca\.crt \(.*no such file"),
    Case("a CA of no base64", cluster(certificate_authority_data="!!"), "is not base64"),
    Case(
        "a CA of no PEM",
        cluster(certificate_authority_data=data(b"x")),
        "no readable certificate in PEM",
    ),
    Case(
        "two CAs",
        cluster(certificate_authority="/ca", certificate_authority_data=data(authority().pem)),
        "both certificate-authority and certificate-authority-data are set; remove one",
    ),
    Case(
        "a CA for nothing",
        cluster(insecure_skip_tls_verify=True, certificate_authority="/ca"),
        "although there is a certificate-authority; remove",
    ),
    Case("a SOCKS proxy", cluster(proxy_url=f"socks5://u:{SECRET}@x:1"), "SOCKS proxies are not"),
    Case("a bad proxy", cluster(proxy_url=f"u:{SECRET}@x:1"), "proxy-url is .*is not a valid URL"),
    Case("token and password", user(token=SECRET, username="x"), "both a token and username"),
    Case("a token of two lines", user(token=f"{SECRET}\nx"), "invalid characters"),
    Case("no token file", user(tokenFile="t"), "token file .*/t cannot be used: no such file"),
    Case("impersonation", user(_as="admin"), "impersonation .* is not supported"),
    Case("a group to be of", user(as_groups=["admins"]), "impersonation .* is not supported"),
    Case(
        "an auth provider",
        user(auth_provider={"name": "gcp"}),
        '"gcp" is no longer supported; use its exec',
    ),
    Case("no certificate file", user(client_certificate="c", client_key="k"), "/c .*no such file"),
    Case("no key", user(client_certificate="c"), "client-certificate is set without a key; set"),
    Case(
        "two certificates",
        user(client_certificate="c", client_certificate_data=data(b"x"), client_key="k"),
        "both client-certificate and client-certificate-data",
    ),
    Case("a key of another", pair(_GOOD.certificate, _OTHER.key), "is not the key of"),
    Case("a key file of another", key_file_of_another, r"me\.key \(.*is not the key of .*me\.crt"),
    Case("an encrypted key", pair(_LOCKED.certificate, _LOCKED.key), "is encrypted; decrypt it"),
    Case("no key at all", pair(_GOOD.certificate, b"x"), "client-key-data .* has no private key"),
    Case(
        "a key as certificate",
        pair(_GOOD.key, _GOOD.key),
        "client-certificate-data .* has no readable cert",
    ),
    Case("a damaged key", pair(_GOOD.certificate, _DAMAGED), "is damaged; replace both"),
    Case("garbage as certificate", pair(b"x", _GOOD.key), "has no readable certificate in PEM"),
    Case("an expired certificate", pair(*_EXPIRED), r"expired at 20\d\d-\d\d-\d\dT.*; renew it"),
    Case("a plugin without command", plugin(command=""), "exec: it has no command; set"),
    Case(
        "a plugin of old",
        plugin(apiVersion="client.authentication.k8s.io/v1alpha1"),
        'v1alpha1" is not supported; set it to client.authentication.k8s.io/v1,',
    ),
    Case("a plugin of no mode", plugin(interactiveMode=""), "set interactiveMode to Never"),
    Case("a plugin of odd mode", plugin(interactiveMode="Perhaps"), "set interactiveMode to Never"),
    Case(
        "a plugin's bad variable",
        plugin(env=[{"name": "", "value": SECRET}]),
        "in `env` has an empty",
    ),
]
