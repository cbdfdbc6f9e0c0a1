"""Exec plugins that work: how they are run, how often, and for how long they are believed."""

import asyncio
import base64
import contextlib
import json
import os
import pty
import ssl
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="needs podstatus[agent]")

from podstatus.client.auth.config import ResolvedClientConfig
from podstatus.client.auth.load_config import kubeconfig_config
from podstatus.client.config_errors import CredentialsError
from podstatus.kube.scalars.time import Time
from podstatus.testing.clock import FakeClock
from tests.client.auth.plugins import V1, V1BETA1, Plugin
from tests.client.auth.tls_servers import peer_name, tls_server
from tests.client.kubeconfigs import data, write
from tests.support.certificates import authority
from tests.support.loops import until

TELL = """
import json
print(json.dumps({"apiVersion": os.environ["VERSION"], "kind": "ExecCredential", "status": {
    "token": json.dumps({"args": sys.argv[1:], "info": os.environ["KUBERNETES_EXEC_INFO"],
                         "home": os.environ.get("HOME"), "cwd": os.getcwd(),
                         "input": sys.stdin.read()})}}))
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path).says("first")


def after(plugin: Plugin, seconds: float) -> str:
    """Return a time after the plugin's clock."""
    return str(Time.from_unix_nanos(plugin.clock.now() + round(seconds * 10**9)))


async def sent(access: ResolvedClientConfig) -> str | None:
    return (await access.credentials()).authorization


async def plugin_input(plugin: Plugin, **fields: Any) -> dict[str, Any]:
    """Return the input that the plugin got."""
    version = fields.get("apiVersion", V1)
    env = [{"name": "VERSION", "value": version}, *fields.pop("env", [])]
    access = plugin.program(TELL).access(env=env, **fields)
    header = await sent(access)
    assert header is not None
    seen: dict[str, Any] = json.loads(header.removeprefix("Bearer "))
    seen["info"] = json.loads(seen["info"])
    return seen


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_a_plugin_gets_its_input(plugin: Plugin, version: str) -> None:
    seen = await plugin_input(plugin, apiVersion=version, args=["a b", "$HOME; `id`", "*"])
    assert seen["args"] == ["a b", "$HOME; `id`", "*"], "there is no shell"
    assert seen["info"] == {
        "apiVersion": version,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    assert seen["home"] == os.environ.get("HOME")
    assert seen["input"] == ""


async def test_variables_of_the_kubeconfig_win(plugin: Plugin) -> None:
    seen = await plugin_input(plugin, env=[{"name": "HOME", "value": "/elsewhere"}])
    assert seen["home"] == "/elsewhere"


async def test_a_plugin_gets_the_cluster_info_if_it_asks_for_it(plugin: Plugin) -> None:
    pem = authority().pem
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    cluster = {
        "certificate-authority-data": data(pem),
        "tls-server-name": "kube",
        "extensions": [extension],
    }
    seen = await plugin_input(plugin, provideClusterInfo=True, cluster=cluster)
    assert seen["info"]["spec"]["cluster"] == {
        "server": "https://127.0.0.1:6443",
        "tls-server-name": "kube",
        "certificate-authority-data": base64.b64encode(pem).decode(),
        "config": {"audience": "x"},
    }


async def test_a_command_without_a_folder_is_found_on_our_path(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"/nowhere:{plugin.folder}")
    # The PATH in `env` only applies to the plugin itself.
    env = [{"name": "PATH", "value": "/nowhere"}]
    assert await sent(plugin.access(command="plugin", env=env)) == "Bearer first"


async def test_a_relative_path_finds_nothing(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", ".")
    monkeypatch.chdir(plugin.folder)
    with pytest.raises(CredentialsError, match="found by a relative PATH only"):
        await sent(plugin.access(command="plugin"))


async def test_without_an_end_it_is_run_once(plugin: Plugin) -> None:
    access = plugin.access()
    first = await access.credentials()
    await plugin.clock.advance(10**6)
    assert await access.credentials() is first
    assert plugin.runs == 1


async def test_many_callers_wait_for_one_run(plugin: Plugin) -> None:
    access = plugin.access()
    found = await asyncio.gather(*(access.credentials() for _ in range(100)))
    assert {each.authorization for each in found} == {"Bearer first"}
    assert len(set(map(id, found))) == 1
    plugin.says("second")
    renewed = await asyncio.gather(*(access.renew(found[0]) for _ in range(100)))
    assert {each.authorization for each in renewed if each} == {"Bearer second"}
    assert len(set(map(id, renewed))) == 1
    assert await access.renew(found[0]) is renewed[0], "an older one was refused"
    assert plugin.runs == 2


async def test_who_gives_up_does_not_stop_the_run_for_others(plugin: Plugin) -> None:
    access = plugin.access()
    first, second = (asyncio.ensure_future(access.credentials()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await first
    assert (await second).authorization == "Bearer first"
    assert plugin.runs == 1


async def test_a_run_that_all_gave_up_is_not_lost(plugin: Plugin) -> None:
    access = plugin.access()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await access.credentials()
    assert await sent(access) == "Bearer first"
    assert plugin.runs == 1


async def test_it_is_renewed_before_its_end_while_requests_go_on(plugin: Plugin) -> None:
    plugin.says("first", expirationTimestamp=after(plugin, 600))
    access = plugin.access()
    first = await access.credentials()
    plugin.says("second", expirationTimestamp=after(plugin, 1200))
    await plugin.clock.advance(569)
    assert await access.credentials() is first
    assert plugin.runs == 1
    await plugin.clock.advance(2)
    assert await access.credentials() is first, "still good for half a minute"
    await until(lambda: plugin.runs == 2)
    second = await access.renew(first)
    assert second is not None
    assert second.authorization == "Bearer second"
    assert await access.credentials() is second
    assert plugin.runs == 2, "the run that had begun was waited for"


async def test_after_its_end_it_is_waited_for(plugin: Plugin) -> None:
    plugin.says("first", expirationTimestamp=after(plugin, 10))
    access = plugin.access()
    await sent(access)
    plugin.says("second", expirationTimestamp=after(plugin, 100))
    await plugin.clock.advance(11)
    found = await asyncio.gather(*(sent(access) for _ in range(20)))
    assert set(found) == {"Bearer second"}
    assert plugin.runs == 2


async def test_one_that_has_expired_already_is_sent_but_not_believed(
    plugin: Plugin, caplog: pytest.LogCaptureFixture
) -> None:
    plugin.says("late", expirationTimestamp=after(plugin, -10))
    access = plugin.access()
    for _ in range(5):
        assert await sent(access) == "Bearer late"
    assert plugin.runs == 1
    assert "already expired" in caplog.text
    await plugin.clock.advance(1)
    await sent(access)
    assert plugin.runs == 2


async def test_the_same_token_again_is_no_other(plugin: Plugin) -> None:
    access = plugin.access()
    refused = await access.credentials()
    for _ in range(5):
        assert await access.renew(refused) is None
    assert plugin.runs == 2, "not more than once a second"
    await plugin.clock.advance(1)
    plugin.says("second")
    assert await access.renew(refused) is not None


async def test_no_call_fails_while_a_plugin_rotates_under_load(plugin: Plugin) -> None:
    """A server that only accepts the newest token, and a hundred concurrent callers."""
    access = plugin.access()

    async def call() -> bool:
        credentials = await access.credentials()
        await asyncio.sleep(0)
        if credentials.authorization == valid:
            return True
        renewed = await access.renew(credentials)
        return renewed is not None and renewed.authorization == valid

    for number in range(10):
        plugin.says(token=f"token-{number}")
        valid = f"Bearer token-{number}"
        assert all(await asyncio.gather(*(call() for _ in range(100))))
    assert plugin.runs == 10


async def test_a_plugin_may_bring_a_certificate(plugin: Plugin) -> None:
    def introduce(name: str, token: str = "") -> None:
        pair = authority().pair(name)
        plugin.says(
            token,
            clientCertificateData=pair.certificate.decode(),
            clientKeyData=pair.key.decode(),
        )

    introduce("first")
    cluster = {"certificate-authority-data": data(authority().pem)}
    plugin.clock = FakeClock("2020-01-01T00:00:00Z")
    access = plugin.access(cluster=cluster)
    first = await access.credentials()
    assert first.authorization is None
    assert first.tls is not None
    async with tls_server(authority()) as port:
        assert await peer_name(port, first.tls) == "first"
        introduce("second", "and-a-token")
        second = await access.renew(first)
        assert second is not None
        assert second.authorization == "Bearer and-a-token"
        assert second.tls is not None
        assert await peer_name(port, second.tls) == "second"


async def test_a_certificate_that_stays_keeps_its_connections(plugin: Plugin) -> None:
    pair = authority().pair("me")
    shared = {
        "clientCertificateData": pair.certificate.decode(),
        "clientKeyData": pair.key.decode(),
    }
    plugin.clock = FakeClock("2020-01-01T00:00:00Z")
    access = plugin.says("first", **shared).access()
    first = await access.credentials()
    plugin.says("second", **shared)
    second = await access.renew(first)
    assert second is not None
    assert second is not first
    assert second.tls is first.tls


async def test_a_new_authority_is_trusted_without_another_run(plugin: Plugin) -> None:
    path = plugin.folder / "ca.crt"
    path.write_bytes(authority().pem)
    access = plugin.access(cluster={"certificate-authority": "ca.crt"})
    first = await access.credentials()
    path.write_bytes(authority("other").pem)
    await plugin.clock.advance(1)
    second = await access.credentials()
    assert second.authorization == first.authorization
    assert isinstance(second.tls, ssl.SSLContext)
    assert second.tls is not first.tls
    assert plugin.runs == 1


async def test_what_is_written_down_wins_over_a_plugin(plugin: Plugin) -> None:
    exec_ = {"command": "./plugin", "apiVersion": V1, "interactiveMode": "Never"}
    path = write(plugin.folder / "config", user={"token": "written", "exec": exec_})
    assert await sent(kubeconfig_config(path)) == "Bearer written"
    assert plugin.runs == 0


async def test_a_daemon_that_a_plugin_leaves_behind_is_not_waited_for(plugin: Plugin) -> None:
    plugin.program(
        textwrap.dedent("""
            import json, subprocess
            print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1",
                              "kind": "ExecCredential", "status": {"token": "first"}}), flush=True)
            daemon = subprocess.Popen([sys.executable, "-IS", "-c", "import time; time.sleep(600)"])
            open(os.path.dirname(sys.argv[0]) + "/daemon", "w").write(str(daemon.pid))
        """)
    )
    assert await sent(plugin.access()) == "Bearer first"
    os.kill(int((plugin.folder / "daemon").read_text()), 9)


ASK = """
import asyncio, fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # as in a shell, /dev/tty is this terminal
from pathlib import Path
from podstatus.client.auth.load_config import kubeconfig_config
print(asyncio.run(kubeconfig_config(Path(sys.argv[1])).credentials()).authorization)
"""


@pytest.mark.parametrize(
    ("mode", "version", "asked"),
    [("Always", V1, True), ("IfAvailable", V1, True), ("", V1BETA1, True), ("Never", V1, False)],
)
def test_a_plugin_gets_the_terminal_if_it_may(
    plugin: Plugin, mode: str, version: str, asked: bool
) -> None:
    plugin.program(
        textwrap.dedent(f"""
            import json
            sys.stderr.write("password: ")
            sys.stderr.flush()
            sys.stdin = os.fdopen(0, "rb", buffering=0)
            has = json.loads(os.environ["KUBERNETES_EXEC_INFO"])["spec"]["interactive"]
            word = "not-prompted"
            if has:
                # As getpass does.
                word = sys.stdin.readline().decode().strip() + open("/dev/tty").readline().strip()
            print(json.dumps({{"apiVersion": {version!r},
                              "kind": "ExecCredential", "status": {{"token": word}}}}))
        """)
    )
    plugin.access(interactiveMode=mode, apiVersion=version)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ASK, str(plugin.folder / "config")],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    os.write(ours, b"typed\ntwice\n")
    output, errors = process.communicate(timeout=90)
    os.close(ours)
    os.close(theirs)
    assert output == ("Bearer typedtwice\n" if asked else "Bearer not-prompted\n"), errors
    assert ("password: " in errors) is asked


@pytest.fixture(params=["/dev/null", None])
def no_terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param is None:
        monkeypatch.setattr(sys, "stdin", None)
        yield
        return
    with Path(request.param).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield


@pytest.mark.usefixtures("no_terminal")
async def test_without_a_terminal_a_plugin_may_do_without(plugin: Plugin) -> None:
    assert await sent(plugin.access(interactiveMode="IfAvailable")) == "Bearer first"
    with pytest.raises(CredentialsError, match="standard input is not a terminal"):
        await sent(plugin.access(interactiveMode="Always"))
