"""Exec checks: exit code, output, and the kill after a timeout."""

import asyncio

import pytest

from podstatus.kube.objects.containers import Container, EnvVar, EnvVarSource, ExecAction
from podstatus.kube.objects.pod import PodUID
from podstatus.probes.check_exec import check_exec, probe_command
from podstatus.probes.decide.check_result import CheckError, CheckResult
from podstatus.testing.clock import FakeClock
from tests.probes.probe_targets import Command, Talker
from tests.support.world_in_memory import TroubledRuntime


async def check(runtime: TroubledRuntime, clock: FakeClock) -> CheckResult:
    return await check_exec(runtime, PodUID("u"), "c", ("test", "-f", "x"), seconds=2, clock=clock)


@pytest.mark.parametrize(("code", "success"), [(0, True), (1, False), (137, False)])
async def test_the_exit_code_decides(code: int, success: bool) -> None:
    clock = FakeClock()
    command = Command(clock, b"one\n", b"two\xff\n", code=code)
    runtime = Talker(clock, command)
    checked = await check(runtime, clock)
    assert checked == CheckResult(success=success, output="one\ntwo\N{REPLACEMENT CHARACTER}\n")
    assert command.is_closed
    assert runtime.asked == [("u", "c", "test", "-f", "x")]


async def test_output_is_cut() -> None:
    clock = FakeClock()
    checked = await check(Talker(clock, Command(clock, b"x" * 8000, b"y" * 8000)), clock)
    assert (len(checked.output), checked.output[-1]) == (10240, "y")


async def test_a_command_that_takes_too_long_has_failed_and_is_ended() -> None:
    clock = FakeClock()
    command = Command(clock, takes=60)

    checking = asyncio.create_task(check(Talker(clock, command), clock))
    await clock.advance(1.9)
    assert not checking.done()
    await clock.advance(0.2)
    output = 'command timed out: "test -f x" timed out after 2s'
    assert await checking == CheckResult(success=False, output=output)
    assert command.is_closed


async def test_a_command_that_cannot_be_run_says_nothing() -> None:
    clock = FakeClock()
    with pytest.raises(CheckError, match="container c is not running"):
        await check(Talker(clock, None), clock)
    with pytest.raises(CheckError, match="cannot run commands"):
        await check(TroubledRuntime(clock), clock)


def test_variables_of_the_spec_are_put_in() -> None:
    container = Container(
        name="a",
        env=(EnvVar(name="A", value="1"), EnvVar(name="B", value_from=EnvVarSource())),
    )
    action = ExecAction(command=("echo", "$(A)", "$(B)", "$(C)", "$$(A)"))
    assert probe_command(action, container) == ("echo", "1", "", "$(C)", "$(A)")
    assert probe_command(ExecAction(), container) == ()


def test_a_command_larger_than_a_process_can_be_given_is_not_built() -> None:
    container = Container(name="a", env=(EnvVar(name="A", value="x" * 1000),))
    action = ExecAction(command=("echo", "$(A)" * 1000))
    with pytest.raises(CheckError, match="cannot expand the command of the probe: has more than"):
        probe_command(action, container)
