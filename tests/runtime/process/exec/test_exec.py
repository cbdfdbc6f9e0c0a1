import asyncio
import os
import re
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from podstatus.base.system_clock import SystemClock
from podstatus.runtime.process.exec.start import exec_in
from podstatus.runtime.process.records.models import ExecContext
from podstatus.runtime.streams import (
    OutputStream,
    ProcessStream,
    StreamOptions,
    StreamUnavailableError,
    TerminalSize,
)
from tests.runtime.process.exec.containers import (
    BWRAP,
    ENV,
    Container,
    isolated_container,
    plain_container,
    running_with,
)

T = TypeVar("T")
NO_BWRAP = "bubblewrap is not installed (Debian: apt install bubblewrap)"
need_bwrap = pytest.mark.skipif(BWRAP is None and "CI" not in os.environ, reason=NO_BWRAP)
need_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch users")


@pytest.fixture(params=["none", pytest.param("bubblewrap", marks=need_bwrap)])
def container(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Container]:
    created = isolated_container(tmp_path) if request.param == "bubblewrap" else plain_container()
    with created as container:
        yield container


@pytest.fixture
def word() -> str:
    """A word that identifies the processes of one test."""
    return f"word-{uuid.uuid4().hex}"


async def start(container: Container, *command: str, **request: bool) -> ProcessStream:
    options = StreamOptions(**request)
    clock = SystemClock()
    return await exec_in(container.process, container.launch, command, options, clock=clock)


async def read_all(session: ProcessStream) -> dict[OutputStream, bytes]:
    output = dict.fromkeys(OutputStream, b"")
    while (piece := await session.read()) is not None:
        output[piece[0]] += piece[1]
    return output


async def finish(session: ProcessStream) -> tuple[int, str, str]:
    try:
        output = await read_all(session)
        code = await session.wait()
    finally:
        await session.close()
    return code, output[OutputStream.STDOUT].decode(), output[OutputStream.STDERR].decode()


async def run(container: Container, *command: str, **request: bool) -> tuple[int, str, str]:
    return await finish(await start(container, *command, **request))


async def read_until(session: ProcessStream, what: bytes) -> bytes:
    output = b""
    while what not in output:
        piece = await session.read()
        assert piece is not None, output
        output += piece[1]
    return output


def play(scenario: Callable[[], Coroutine[object, object, T]]) -> T:
    """Run the scenario; it must leave no open file and no child."""

    async def watched() -> T:
        before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208
        async with asyncio.timeout(90):
            result = await scenario()
        assert len(os.listdir("/proc/self/fd")) == len(before)  # noqa: PTH208
        return result

    return asyncio.run(watched())


def sh(container: Container, script: str, **request: bool) -> tuple[int, str, str]:
    return play(lambda: run(container, "sh", "-c", script, **request))


def test_both_channels_and_the_exit_code(container: Container) -> None:
    assert sh(container, "echo out; echo err >&2; exit 3") == (3, "out\n", "err\n")


def test_streams_that_were_not_requested_are_not_read(container: Container) -> None:
    script = "echo out; echo err >&2"
    assert sh(container, script, stdout=False) == (0, "", "err\n")
    assert sh(container, script, stderr=False) == (0, "out\n", "")


@pytest.mark.parametrize(("signal", "code"), [("KILL", 137), ("TERM", 143)])
def test_a_signal_becomes_an_exit_code(container: Container, signal: str, code: int) -> None:
    assert sh(container, f"kill -{signal} $$")[0] == code


def test_it_finds_what_the_container_was_given(container: Container) -> None:
    code, out, _ = play(lambda: run(container, "env", "-0"))
    assert code == 0
    assert dict(item.split("=", 1) for item in out.rstrip("\0").split("\0")) == ENV
    assert play(lambda: run(container, "pwd")) == (0, "/usr\n", "")


def test_arguments_arrive_unchanged(container: Container) -> None:
    arguments = ["", " ", "'\"", "$(id)", "a\nb", "ü", "\udcff"]
    code, out, _ = play(lambda: run_bytes(container, "printf", "%s\\0", *arguments))
    assert code == 0
    assert out.split(b"\0")[:-1] == [os.fsencode(argument) for argument in arguments]


async def run_bytes(container: Container, *command: str) -> tuple[int, bytes, bytes]:
    session = await start(container, *command)
    try:
        output = await read_all(session)
        return await session.wait(), output[OutputStream.STDOUT], output[OutputStream.STDERR]
    finally:
        await session.close()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("no-such", 'exec: "no-such": executable file not found in $PATH'),
        ("/no/such", 'exec: "/no/such": stat /no/such: no such file or directory'),
        ("/etc/passwd", 'exec: "/etc/passwd": permission denied'),
        ("/etc", 'exec: "/etc": is a directory'),
        ("a\0b", 'exec: "a\\u0000b": invalid argument'),
    ],
)
def test_a_command_that_cannot_be_executed(container: Container, command: str, why: str) -> None:
    with pytest.raises(StreamUnavailableError, match=re.escape(why)):
        play(lambda: run(container, command))


def test_no_command_is_refused(container: Container) -> None:
    with pytest.raises(StreamUnavailableError, match="at least one command"):
        play(lambda: run(container))


def test_a_container_that_has_ended_is_no_place(container: Container) -> None:
    container.end()
    with pytest.raises(StreamUnavailableError, match="the container has ended"):
        play(lambda: run(container, "true"))


def test_input_and_its_end(container: Container) -> None:
    data = os.urandom(1 << 20)

    async def scenario() -> bytes:
        session = await start(container, "cat", stdin=True)

        async def say() -> None:
            await session.write(data)
            await session.close_stdin()

        output, _ = await asyncio.gather(read_all(session), say())
        assert await session.wait() == 0
        await session.close()
        return output[OutputStream.STDOUT]

    assert play(scenario) == data


def test_input_after_the_end_of_the_command_is_dropped(container: Container) -> None:
    async def scenario() -> None:
        session = await start(container, "true", stdin=True)
        await session.wait()
        await session.write(b"x" * 1_000_000)
        await session.close_stdin()
        await session.write(b"more")
        await session.close()
        deaf = await start(container, "true")
        await deaf.write(b"x" * 1_000_000)
        await deaf.close()

    play(scenario)


def test_only_its_own_files_are_open_in_it(container: Container) -> None:
    code, out, _ = sh(container, "ls /proc/self/fd; exit 0")
    assert (code, out) == (0, "0\n1\n2\n3\n")  # 3 is the listed folder


def test_signals_are_as_usual_in_it(container: Container) -> None:
    _, out, _ = play(lambda: run(container, "grep", "^Sig[BI]", "/proc/self/status"))
    # 32 and 33 are reserved by the C library and ignored in children of posix_spawn, such as make.
    own = 1 << 31 | 1 << 32
    assert {int(mask, 16) & ~own for mask in re.findall(r"\t(\w+)", out)} == {0}


def test_a_terminal(container: Container) -> None:
    async def scenario() -> bytes:
        session = await start(container, "sh", "-c", "read x; tty; stty size; cat", tty=True)
        session.resize(TerminalSize(columns=132, rows=43))
        await session.write(b"\n")
        output = await read_until(session, b"43 132")
        await session.close_stdin()
        assert await session.wait() == 0
        await session.close()
        return output

    output = play(scenario)
    assert re.search(rb"/dev/pts/\d+\r\n43 132", output)


def test_a_terminal_is_hung_up(container: Container, word: str) -> None:
    async def scenario() -> None:
        session = await start(container, "sh", "-c", f"echo up; : {word}; sleep 600", tty=True)
        await read_until(session, b"up")
        assert running_with(word)
        await session.close()
        assert not running_with(word)

    play(scenario)


STUBBORN = (
    'trap "" TERM HUP INT; '
    "setsid sh -c 'trap \"\" TERM HUP; echo up; while :; do sleep 1; done; : {}' &"
)


def test_hanging_up_ends_all_that_was_started(container: Container, word: str) -> None:
    async def scenario() -> None:
        script = f"{STUBBORN.format(word)} wait; : {word}"
        session = await start(container, "sh", "-c", script)
        await read_until(session, b"up")
        assert len(running_with(word)) >= 2
        await session.close()
        assert not running_with(word)
        assert await session.wait() == 137
        assert await session.read() is None
        await session.close()

    play(scenario)


def test_a_daemon_ends_with_the_talk_and_does_not_hold_it_up(
    container: Container, word: str
) -> None:
    async def scenario() -> None:
        session = await start(
            container, "sh", "-c", f"({STUBBORN.format(word)}); sleep 0.2; exit 4"
        )
        assert (await read_all(session))[OutputStream.STDOUT] == b"up\n"
        assert await session.wait() == 4
        assert running_with(word)
        await session.close()
        assert not running_with(word)

    play(scenario)


def test_a_daemon_that_never_stops_talking_is_not_heard_for_ever(container: Container) -> None:
    async def scenario() -> None:
        session = await start(container, "sh", "-c", "yes & exit 4")
        while await session.read() is not None:
            pass
        assert await session.wait() == 4
        await session.close()

    play(scenario)


def test_it_ends_with_its_container(container: Container, word: str) -> None:
    async def scenario() -> None:
        session = await start(container, "sh", "-c", f"{STUBBORN.format(word)} wait; : {word}")
        await read_until(session, b"up")
        container.end()
        assert await session.wait() == 137
        assert await session.read() is None
        await session.close()
        assert not running_with(word)

    play(scenario)


def test_who_is_not_waited_for_any_more_leaves_nothing(container: Container, word: str) -> None:
    async def scenario() -> None:
        for delay in range(0, 100, 20):
            script = f"{STUBBORN.format(word)} wait"
            task = asyncio.ensure_future(start(container, "sh", "-c", script))
            await asyncio.wait([task], timeout=delay / 1000)
            if not task.cancel():
                await (await task).close()
            await asyncio.wait([task])
        assert not running_with(word)

    play(scenario)


def test_who_does_not_read_holds_up_the_command() -> None:
    async def scenario(container: Container) -> None:
        script = "i=0; while printf %065536d 0; do i=$((i+1)); echo $i >&2; done"
        session = await start(container, "sh", "-c", script)
        first = await session.read()
        assert first is not None
        counted = 0
        # No output of the one is read as long as the other is not.
        await asyncio.sleep(0.3)
        output = await session.read()
        assert output is not None
        if output[0] is OutputStream.STDERR:
            counted = int(output[1].split()[-1])
        assert counted <= 4
        await session.close()

    with plain_container() as container:
        play(lambda: scenario(container))


def test_a_command_that_does_not_read_holds_up_who_writes(container: Container) -> None:
    async def scenario() -> None:
        session = await start(container, "sleep", "600", stdin=True)
        writing = asyncio.ensure_future(session.write(b"x" * 1_000_000))
        done, _ = await asyncio.wait([writing], timeout=0.3)
        assert not done
        await session.close()
        await writing

    play(scenario)


def test_much_output_is_complete_when_it_is_read_slowly(container: Container) -> None:
    async def scenario() -> int:
        session = await start(container, "head", "-c", "3000000", "/dev/zero")
        total = 0
        while (piece := await session.read()) is not None:
            total += len(piece[1])
            if total > 2_900_000:
                await asyncio.sleep(0.6)
        await session.close()
        return total

    assert play(scenario) == 3_000_000


def test_who_stops_waiting_for_output_loses_none(container: Container) -> None:
    async def scenario() -> bytes:
        session = await start(container, "sh", "-c", "read x; echo $x", stdin=True)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.read(), 0.05)
        await session.write(b"here\n")
        return (await finish(session))[1].encode()

    assert play(scenario) == b"here\n"


def test_it_joins_the_cgroups_of_its_container(tmp_path: Path) -> None:
    joined = tmp_path / "cgroup.procs"
    joined.touch()
    with plain_container(cgroups=(str(joined),)) as container:
        assert play(lambda: run(container, "true"))[0] == 0
        assert joined.read_bytes() == b"0"

    gone = str(tmp_path / "gone/cgroup.procs")
    with (
        plain_container(cgroups=(gone,)) as container,
        pytest.raises(StreamUnavailableError, match="cannot join the cgroup"),
    ):
        play(lambda: run(container, "true"))


@need_root
def test_it_is_the_user_of_its_container() -> None:
    credentials = {"user": 1234, "group": 1235, "groups": (1235, 1236)}
    with plain_container(**credentials) as container:
        _, out, _ = sh(container, "id -u; id -g; id -G; grep NoNew /proc/self/status")
    assert out == "1234\n1235\n1235 1236\nNoNewPrivs:\t1\n"


@need_bwrap
@need_root
@pytest.mark.parametrize(
    "context",
    [
        None,
        ExecContext(cwd="/", user=1234, group=1235, groups=(1236,), capabilities=()),
    ],
    ids=["older record", "record"],
)
def test_it_is_the_user_that_its_container_became_inside(
    tmp_path: Path, context: ExecContext | None
) -> None:
    switch = (
        "/usr/bin/setpriv",
        "--reuid=1234",
        "--regid=1235",
        "--groups=1236",
        "--inh-caps=-all",
    )
    argv = (*switch, "--", "sleep", "600")
    with isolated_container(tmp_path, argv=argv, exec_context=context) as container:
        _, out, _ = sh(container, "id -u; id -g; id -G; grep Cap /proc/self/status")
    assert out.splitlines()[:3] == ["1234", "1235", "1235 1236"]
    assert set(re.findall(r"\t(\w+)", out)) == {"0" * 16}


@need_bwrap
def test_it_cannot_do_more_than_its_container(tmp_path: Path) -> None:
    script = """
    grep -E '^(Cap(Prm|Eff|Bnd)|NoNew)' /proc/self/status
    mount -o remount,rw / && echo remounted
    mount -o remount,rw,bind / && echo remounted
    touch /usr/pe-was-here && echo written
    mount -t tmpfs none /mnt && echo mounted
    nsenter -t 1 -m true && echo entered
    unshare -m true && echo unshared
    touch /tmp/allowed && echo as it should be
    """
    with isolated_container(tmp_path, add=("CAP_CHOWN", "CAP_KILL")) as container:
        _, out, _ = sh(container, script)
    assert out.splitlines() == [
        "CapPrm:\t0000000000000021",
        "CapEff:\t0000000000000021",
        "CapBnd:\t0000000000000021",
        "NoNewPrivs:\t1",
        "as it should be",
    ]
    assert (tmp_path / "allowed").exists()


@need_bwrap
def test_the_container_cannot_look_into_its_supervisor(tmp_path: Path) -> None:
    script = """
    for pid in $(ls /proc | grep -E '^[0-9]+$'); do
        if grep -q nsenter_program.py /proc/$pid/cmdline 2>/dev/null && test $pid != $$; then
            readlink /proc/$pid/exe || echo hidden
        fi
    done
    """
    with isolated_container(tmp_path) as container:
        _, out, _ = sh(container, script)
    assert out == "hidden\n"


@need_bwrap
@need_root
def test_who_watches_has_no_more_rights_and_runs_what_cannot_be_written(tmp_path: Path) -> None:
    async def scenario(container: Container) -> None:
        session = await start(container, "sleep", "600")
        try:
            (watcher,) = watchers(container)
            assert os.statvfs(watcher / "exe").f_flag & os.ST_RDONLY
            status = (watcher / "status").read_text()
            assert set(re.findall(r"Cap(?:Prm|Eff|Bnd):\t(\w+)", status)) == {"0000000000000001"}
        finally:
            await session.close()

    with isolated_container(tmp_path, add=("CAP_CHOWN",)) as container:
        play(lambda: scenario(container))


def watchers(container: Container) -> list[Path]:
    """The /proc folders of the supervisors of exec commands."""
    inside = Path(f"/proc/{container.process.pid}/ns/pid").readlink()
    folders = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (path / "ns/pid").readlink() == inside and b"nsenter_program" in (
                path / "cmdline"
            ).read_bytes():
                folders.append(path)
    return folders
