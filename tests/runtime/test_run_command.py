"""A command in a container: exit code, output and timeout."""

import asyncio
from collections.abc import Sequence

import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import Runtime, RuntimeDownError
from podstatus.runtime.run_command import (
    MAX_OUTPUT_BYTES,
    CommandError,
    CommandResult,
    run_command,
)
from podstatus.runtime.streams import (
    CommandOutput,
    OutputStream,
    StreamOptions,
    StreamUnavailableError,
)
from podstatus.testing.clock import FakeClock
from tests.support.fake_exec_runtime import FakeExecStream, MuteRuntime, TalkingRuntime

UID = PodUID("u")
COMMAND = ("sh", "-c", "true")


async def run(runtime: Runtime, seconds: float | None, clock: FakeClock) -> CommandResult:
    return await run_command(runtime, UID, "id", COMMAND, seconds=seconds, clock=clock)


def result_of(
    *pieces: tuple[OutputStream, bytes], code: int = 0
) -> tuple[CommandResult, FakeExecStream]:
    async def main() -> tuple[CommandResult, FakeExecStream]:
        clock = FakeClock()
        session = FakeExecStream(clock, pieces=pieces, code=code)
        runtime = TalkingRuntime(lambda: session)
        result = await run(runtime, None, clock)
        assert runtime.asked == [(UID, "id", COMMAND, StreamOptions())]
        return result, session

    return asyncio.run(main())


def test_output_and_errors_are_kept_as_they_come() -> None:
    pieces = (
        (OutputStream.STDOUT, b"one "),
        (OutputStream.STDERR, b"two "),
        (OutputStream.STDOUT, b"three"),
    )
    result, session = result_of(*pieces, code=3)
    assert result == CommandResult(exit_code=3, output="one two three")
    assert session.is_closed


@pytest.mark.parametrize(
    "pieces",
    [
        [b"a" * (MAX_OUTPUT_BYTES + 1)],
        [b"a" * (MAX_OUTPUT_BYTES - 1), b"ab", b"b"],
        [b"a" * 100] * 5000,
    ],
    ids=["one", "over", "many"],
)
def test_of_much_output_the_beginning_is_kept_and_all_is_read(pieces: Sequence[bytes]) -> None:
    result, session = result_of(*((OutputStream.STDOUT, piece) for piece in pieces))
    assert result.output == "a" * MAX_OUTPUT_BYTES
    assert session.is_read


def test_what_is_no_text_is_replaced() -> None:
    result, _ = result_of((OutputStream.STDOUT, b"\xffa"))
    assert result.output == "\ufffda"


@pytest.mark.parametrize("seconds", [3, 3.5])
async def test_a_command_that_takes_too_long_is_ended(seconds: float) -> None:
    clock = FakeClock()
    session = FakeExecStream(clock, takes=10)
    running = asyncio.ensure_future(run(TalkingRuntime(lambda: session), seconds, clock))
    await clock.advance(seconds - 0.1)
    was_closed = session.is_closed
    await clock.advance(0.1)
    assert (was_closed, session.is_closed) == (False, True)
    with pytest.raises(TimeoutError):
        await running


async def test_a_command_without_a_timeout_may_take_any_time() -> None:
    clock = FakeClock()
    session = FakeExecStream(clock, takes=1e6, code=1)
    running = asyncio.ensure_future(run(TalkingRuntime(lambda: session), None, clock))
    await clock.advance(1e6)
    assert (await running).exit_code == 1


@pytest.mark.parametrize("seconds", [30, None])
async def test_who_gives_up_ends_the_command(seconds: float | None) -> None:
    clock = FakeClock()
    session = FakeExecStream(clock, takes=10)
    running = asyncio.ensure_future(run(TalkingRuntime(lambda: session), seconds, clock))
    await clock.advance(1)
    running.cancel()
    await clock.advance(0)
    assert running.cancelled()
    assert session.is_closed


async def test_a_command_that_cannot_be_executed_says_why() -> None:
    def refuse() -> FakeExecStream:
        raise StreamUnavailableError("sh: no such file")

    async def main() -> None:
        clock = FakeClock()
        await run(TalkingRuntime(refuse), 1, clock)

    with pytest.raises(CommandError, match="sh: no such file"):
        await main()


async def test_a_runtime_that_does_not_talk_is_named() -> None:
    async def main() -> None:
        clock = FakeClock()
        await run(MuteRuntime(), 1, clock)

    with pytest.raises(CommandError, match="the runtime mute cannot run commands"):
        await main()


async def test_a_runtime_that_is_down_is_no_matter_of_the_command() -> None:
    def refuse() -> FakeExecStream:
        raise RuntimeDownError("no answer")

    async def main() -> None:
        clock = FakeClock()
        await run(TalkingRuntime(refuse), 1, clock)

    with pytest.raises(RuntimeDownError):
        await main()


async def test_a_talk_that_breaks_is_closed() -> None:
    async def main() -> FakeExecStream:
        clock = FakeClock()
        session = FakeExecStream(clock, breaks=OSError("gone"))
        with pytest.raises(OSError, match="gone"):
            await run(TalkingRuntime(lambda: session), 5, clock)
        return session

    assert (await main()).is_closed


class CommandRuntime(MuteRuntime):
    """It runs commands to their end, without streams."""

    def __init__(self, clock: FakeClock, result: CommandOutput | Exception) -> None:
        super().__init__(())
        self._clock = clock
        self._result = result
        self.was_cancelled = False

    async def exec_sync(
        self, uid: PodUID, container_id: str, command: tuple[str, ...]
    ) -> CommandOutput:
        try:
            await self._clock.wait(5.0)
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


async def test_a_runtime_without_streams_runs_commands_to_their_end() -> None:
    clock = FakeClock()
    long = b"\xff" + b"a" * MAX_OUTPUT_BYTES
    runtime = CommandRuntime(clock, CommandOutput(exit_code=3, output=long))
    running = asyncio.ensure_future(run(runtime, 30, clock))
    await clock.advance(5)
    result = await running
    assert (result.exit_code, result.output) == (3, "\ufffd" + "a" * (MAX_OUTPUT_BYTES - 1))


async def test_such_a_command_is_cancelled_when_it_takes_too_long() -> None:
    clock = FakeClock()
    runtime = CommandRuntime(clock, CommandOutput(exit_code=0, output=b""))
    running = asyncio.ensure_future(run(runtime, 1, clock))
    await clock.advance(1)
    with pytest.raises(TimeoutError):
        await running
    assert runtime.was_cancelled


async def test_such_a_command_that_cannot_be_executed_says_why() -> None:
    clock = FakeClock()
    running = asyncio.ensure_future(
        run(CommandRuntime(clock, StreamUnavailableError("sh: no such file")), 30, clock)
    )
    await clock.advance(5)
    with pytest.raises(CommandError, match="sh: no such file"):
        await running
