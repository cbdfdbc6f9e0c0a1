"""No token, key or password is ever shown: not in logs, not in errors, not when printed."""

import asyncio
import contextlib
import logging
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="needs podstatus[agent]")

from podstatus.client.api_client import ApiClient
from podstatus.client.auth.config import ResolvedClientConfig
from podstatus.client.auth.load_config import kubeconfig_config, token_config
from podstatus.client.auth.load_kubeconfig import load_kubeconfig
from podstatus.client.config_errors import CredentialsError, KubeconfigError
from podstatus.client.kubeconfig.model import resolve_context
from podstatus.client.rest.resources import NODES
from podstatus.kube.api_errors import UnavailableError
from tests.client import bad_kubeconfigs
from tests.client.auth import bad_plugins
from tests.client.auth.plugins import Plugin
from tests.client.kubeconfigs import data, write
from tests.client.raw_server import raw_server
from tests.support.certificates import authority

PAIR = authority().pair("me")
SECRETS = (bad_kubeconfigs.SECRET, bad_plugins.SECRET, "s3cr3t", "hunter2")


def secrets_in(text: str) -> list[str]:
    keys = [line for line in PAIR.key.decode().splitlines() if "-----" not in line]
    return [secret for secret in (*SECRETS, *keys, data(PAIR.key)) if secret in text]


def parts(value: object) -> Iterator[object]:
    """Return all objects of this package that an object refers to."""
    if isinstance(value, tuple | list):
        inside: list[object] = list(value)
    elif isinstance(value, Mapping):
        inside = list(value.values())
    elif type(value).__module__.startswith("podstatus.client"):
        yield value
        inside = [getattr(value, name) for name in getattr(value, "__struct_fields__", ())]
        inside += vars(value).values() if hasattr(value, "__dict__") else ()
    else:
        return
    for each in inside:
        yield from parts(each)


def printed(value: object) -> str:
    """Return the reprs of an object and of all its parts."""
    shown = [repr(part) for part in parts(value)]
    assert shown
    return "\n".join(shown)


def all_text(error: BaseException) -> str:
    """Return all text of an error, with its causes."""
    behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    causes = "" if behind is None else all_text(behind)
    return f"{error} {error!r} " + "".join(traceback.format_exception(error)) + causes


@pytest.fixture(autouse=True)
def all_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


@pytest.mark.parametrize("case", bad_kubeconfigs.CASES, ids=lambda case: case.name)
def test_bad_kubeconfigs_show_none(
    case: bad_kubeconfigs.Case, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(KubeconfigError) as caught:
        kubeconfig_config(case.write(tmp_path), environment={})
    assert secrets_in(all_text(caught.value) + caplog.text) == []


@pytest.mark.parametrize("case", bad_plugins.CASES, ids=lambda case: case.name)
def test_bad_plugins_show_none(
    case: bad_plugins.Case, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    access = case.made(Plugin(tmp_path)).access(seconds=case.seconds, **case.fields)
    with pytest.raises(CredentialsError) as caught:
        asyncio.run(access.credentials(), debug=True)
    assert secrets_in(all_text(caught.value) + printed(access) + caplog.text) == []


async def use(access: ResolvedClientConfig) -> object:
    credentials = await access.credentials()
    with contextlib.suppress(CredentialsError):
        await access.renew(credentials)
    return credentials


@pytest.mark.parametrize(
    "user",
    [
        {"token": "s3cr3t"},
        {"tokenFile": "token"},
        {"tokenFile": "missing", "token": "s3cr3t"},
        {"username": "me", "password": "hunter2"},
        {
            "client-certificate-data": data(PAIR.certificate),
            "client-key-data": data(PAIR.key),
        },
        {
            "token": "s3cr3t",
            "exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1beta1"},
        },
    ],
)
def test_good_ones_show_none(
    user: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "token").write_text("s3cr3t")
    cluster = {"proxy-url": "http://me:hunter2@proxy:3128"}
    path = write(tmp_path / "config", cluster=cluster, user=user)
    access = kubeconfig_config(path)
    credentials = asyncio.run(use(access), debug=True)
    config = load_kubeconfig(path, {})
    shown = [printed(each) for each in (access, credentials, config, resolve_context(config))]
    assert secrets_in("\n".join(shown) + caplog.text) == []


def test_a_good_plugin_shows_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    plugin = Plugin(tmp_path).says("s3cr3t-1")
    access = plugin.access(env=[{"name": "PASSWORD", "value": "hunter2"}], args=["hunter2"])

    async def renewed() -> object:
        first = await access.credentials()
        plugin.says("s3cr3t-2")
        return await access.renew(first)

    credentials = asyncio.run(renewed(), debug=True)
    assert "credentials renewed" in caplog.text
    assert secrets_in(printed(access) + printed(credentials) + caplog.text) == []


async def test_a_server_that_speaks_something_else_shows_none() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")

    async with (
        raw_server(greet) as address,
        ApiClient(token_config(address, "s3cr3t")) as client,
    ):
        with pytest.raises(UnavailableError) as caught:
            await client.get(NODES, "n1")
    assert secrets_in(all_text(caught.value)) == []


def test_a_plain_token_is_not_shown() -> None:
    assert secrets_in(printed(token_config("https://127.0.0.1:1", "s3cr3t"))) == []
