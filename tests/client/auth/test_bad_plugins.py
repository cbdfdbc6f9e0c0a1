"""Exec plugins that hang, fail or print garbage: one clear line each, and nothing left behind."""

import asyncio
import json
import logging
import os
import signal
import textwrap
import time
from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="needs podstatus[agent]")

from podstatus.client.auth.exec_plugin.output_redaction import redact_line
from podstatus.client.config_errors import CredentialsError
from podstatus.kube.scalars.time import Time
from tests.client.auth.bad_plugins import CASES, SECRET, Case
from tests.client.auth.plugins import Plugin, answer
from tests.support.loops import until


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_one_line_says_what_is_wrong(case: Case, plugin: Plugin) -> None:
    access = case.made(plugin).access(seconds=case.seconds, **case.fields)
    with pytest.raises(CredentialsError, match=case.message) as caught:
        await access.credentials()
    message = str(caught.value)
    assert message.startswith("exec plugin ")
    assert "\n" not in message
    assert len(message) < 600
    assert SECRET not in message


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


@pytest.mark.parametrize("rest", ["", "\\nlast words\\n"])
async def test_nothing_is_shown_of_a_line_whose_beginning_is_gone(
    plugin: Plugin, rest: str
) -> None:
    words = "'password=' + 'a:b ' * 100_000"
    plugin.program(f"sys.stderr.write({words} + '{rest}'); sys.stderr.flush(); sys.exit(1)")
    with pytest.raises(CredentialsError) as caught:
        await plugin.access().credentials()
    assert "a:b" not in str(caught.value)
    assert ("last words" in str(caught.value)) is bool(rest)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks Linux who lives")
async def test_one_that_hangs_is_killed_with_its_children(plugin: Plugin) -> None:
    plugin.program(
        textwrap.dedent("""
            import signal, subprocess, time
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            child = subprocess.Popen([sys.executable, "-IS", "-c", "import time; time.sleep(600)"])
            with open(os.path.dirname(sys.argv[0]) + "/pids", "w") as pids:
                pids.write(f"{os.getpid()} {child.pid}")
            sys.stderr.write("waiting for the browser\\n")
            sys.stderr.flush()
            time.sleep(600)
        """)
    )
    started = time.monotonic()
    with pytest.raises(CredentialsError, match=r"killed \(waiting for the browser\); run it"):
        await plugin.access(seconds=3.0).credentials()
    assert time.monotonic() - started < 60
    pids = (plugin.folder / "pids").read_text().split()
    await until(lambda: not any(is_alive(int(pid)) for pid in pids))


DAEMON = """
import signal, subprocess, time
def daemon(seconds):
    # As daemon(3): a session of its own, and no parent but init.
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            with open(os.path.dirname(sys.argv[0]) + "/pids", "a") as pids:
                pids.write(f"{os.getpid()} ")
            for descriptor in range(3):
                os.close(descriptor)
            time.sleep(seconds)
        os._exit(0)
    os.wait()
open(os.path.dirname(sys.argv[0]) + "/pids", "w").close()
daemon(600)
while len(open(os.path.dirname(sys.argv[0]) + "/pids").read().split()) < 1:
    time.sleep(0.01)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks Linux who lives")
@pytest.mark.parametrize(
    ("ending", "message"), [("time.sleep(600)", "was killed"), ("sys.exit(3)", "exit code 3")]
)
async def test_daemons_of_one_that_hangs_or_fails_are_killed(
    plugin: Plugin, ending: str, message: str
) -> None:
    plugin.program(DAEMON + ending)
    with pytest.raises(CredentialsError, match=message):
        await plugin.access(seconds=3.0).credentials()
    (pid,) = (plugin.folder / "pids").read_text().split()
    await until(lambda: not is_alive(int(pid)))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks Linux who lives")
async def test_a_daemon_of_one_that_works_lives_on(plugin: Plugin) -> None:
    text = json.dumps(answer(token=SECRET))
    plugin.program(f"{DAEMON}\nsys.stdout.write({text!r})")
    await plugin.access().credentials()
    (pid,) = (plugin.folder / "pids").read_text().split()
    assert is_alive(int(pid))
    os.kill(int(pid), signal.SIGKILL)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks Linux who lives")
async def test_one_that_forks_without_end_is_killed(plugin: Plugin) -> None:
    mark = f"fork-{os.getpid()}-{time.monotonic_ns()}"
    plugin.program(
        "import time\n"
        f"until, mark = time.monotonic() + 60, {mark!r}\n"
        "if os.fork():\n"
        "    time.sleep(600)\n"
        "while time.monotonic() < until:\n"
        "    if os.fork():\n"
        "        os._exit(0)\n"
        "    os.setsid()\n"
        "    open('/proc/self/comm', 'w').write(mark[-15:])\n"
    )
    with pytest.raises(CredentialsError):
        await plugin.access(seconds=1.0).credentials()

    def lives() -> bool:
        names = (path for path in Path("/proc").glob("[0-9]*/comm"))
        return any(_read(name).strip() == mark[-15:] for name in names)

    await until(lambda: not lives())


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks Linux who lives")
def test_the_end_of_the_loop_is_the_end_of_the_plugin(plugin: Plugin) -> None:
    pid = plugin.folder / "pid"
    os.mkfifo(pid)
    plugin.program(f"import time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)")

    async def begin() -> str:
        run = asyncio.ensure_future(plugin.access().credentials())
        number = await asyncio.to_thread(pid.read_text)
        assert not run.done()
        return number

    started = time.monotonic()
    number = asyncio.run(begin())
    assert not is_alive(int(number))
    assert time.monotonic() - started < 60


async def test_a_failing_plugin_is_tried_again_once_a_second(plugin: Plugin) -> None:
    access = plugin.program("sys.exit(1)").access()
    for _ in range(5):
        with pytest.raises(CredentialsError, match="exit code 1"):
            await access.credentials()
    assert plugin.runs == 1
    failed = await asyncio.gather(*(access.credentials() for _ in range(9)), return_exceptions=True)
    assert len(set(map(id, failed))) == 9, "each has an error of its own"
    await plugin.clock.advance(1)
    plugin.says("good")
    assert (await access.credentials()).authorization == "Bearer good"


async def test_one_that_fails_too_early_does_no_harm(
    plugin: Plugin, caplog: pytest.LogCaptureFixture
) -> None:
    """The previous credentials are still valid for some time."""
    expires = Time.from_unix_nanos(plugin.clock.now() + 600 * 10**9)
    access = plugin.says("first", expirationTimestamp=str(expires)).access()
    first = await access.credentials()
    plugin.program("sys.exit(1)")
    for _ in range(3):
        await plugin.clock.advance(574 if plugin.runs == 1 else 2)
        assert await access.credentials() is first
        with pytest.raises(CredentialsError):
            await access.renew(first)
    assert plugin.runs == 4
    warned = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warned) == 1
    await plugin.clock.advance(60)
    with pytest.raises(CredentialsError, match="exit code 1"):
        await access.credentials()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("", ""),
        ("\n \n", ""),
        ("first\nlast\n", "last"),
        ("error: you must be logged in to the server", None),
        ("open /home/me/.kube/cache/oidc-login/config.yaml: no such file", None),
        ("dial tcp: lookup login.microsoftonline.com on 10.0.0.10:53: no such host", None),
        ("An error occurred (ExpiredTokenException) when calling AssumeRole", None),
        ("password: hunter2", "password: …"),
        ('{"access_token": "abc", "x": 1}', '{"access_token": "…", "x": 1}'),
        ("AWS_SECRET_ACCESS_KEY=abc/def", "AWS_SECRET_ACCESS_KEY=…"),
        ("Authorization: Bearer abc", "Authorization: …"),
        ("authorization=Basic abc, sent", "authorization=…"),
        ("the token is abc123", "the token is …"),
        ("failed with status code: 401 Unauthorized", None),
        (
            "invalid token: see https://example.com/docs",
            "invalid token: … https://example.com/docs",
        ),
        ("sent bearer abc.def", "sent bearer …"),
        ("get https://me:pw@host/x", "get https://…@host/x"),
        ("got eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJl", "got …"),
        ("got AKIAIOSFODNN7EXAMPLEKEY", "got …"),
        ("got 0123456789abcdef0123456789abcdef", "got …"),
    ],
)
def test_what_looks_like_a_secret_is_not_shown(line: str, shown: str | None) -> None:
    assert redact_line(line) == (line if shown is None else shown)
