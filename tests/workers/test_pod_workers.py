"""Pods that run, exit, crash or fail to start, on a whole node in virtual time."""

import asyncio

import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.port import CannotStartError
from podstatus.testing.clock import FakeClock
from podstatus.workers.lifecycle.state_machine import Eviction, PodWorkerState
from tests.support.node_in_memory import NodeInMemory, a_pod, with_deadline
from tests.support.world_in_memory import TroubledRuntime

PULLED = 'Pulled: Container image "a:1" already present on machine and can be accessed by the pod'

# Run, exit, restart


async def test_a_pod_runs(node: NodeInMemory) -> None:
    node.create(a_pod("p", "start=2s"))
    await node.passes(3)
    assert node.shown_at("p") == [
        (0.0, "new"),
        (0.0, "Pending a:ContainerCreating"),
        (2.0, "Running a:running+"),
    ]
    assert node.events("p") == [
        PULLED,
        "Created: Container created",
        "Started: Container started",
    ]
    assert node.calls() == ["start p sandbox", "start p a-0"]


async def test_a_crash_loop_waits_longer_each_time(node: NodeInMemory) -> None:
    node.create(a_pod("p", "start=100ms, run=2s, exit=1"))
    await node.passes(170)
    assert node.shown_at("p") == [
        (0.0, "new"),
        (0.0, "Pending a:ContainerCreating"),
        (0.1, "Running a:running+"),
        (2.1, "Running a:exit-1"),
        (2.2, "Running a:running+(1)"),
        (4.2, "Running a:exit-1(1)"),
        (14.2, "Running a:CrashLoopBackOff(1)"),
        (14.3, "Running a:running+(2)"),
        (16.3, "Running a:exit-1(2)"),
        (36.3, "Running a:CrashLoopBackOff(2)"),
        (36.4, "Running a:running+(3)"),
        (38.4, "Running a:exit-1(3)"),
        (78.4, "Running a:CrashLoopBackOff(3)"),
        (78.5, "Running a:running+(4)"),
        (80.5, "Running a:exit-1(4)"),
        # Synced once a minute, whatever it waits for.
        (140.5, "Running a:CrashLoopBackOff(4)"),
        (160.6, "Running a:running+(5)"),
        (162.6, "Running a:exit-1(5)"),
    ]
    assert set(node.events("p", "BackOff")) == {
        "BackOff: Back-off restarting failed container a in pod p_ns(uid-p)"
    }
    assert node.event_seconds("p", "BackOff") == [4.2, 16.3, 38.4, 80.5, 140.5, 162.6]


class SkewedClock:
    """The clock of a runtime whose wall clock differs from the agent's."""

    def __init__(self, clock: FakeClock, ahead: float) -> None:
        self._clock = clock
        self._ahead = round(ahead * 10**9)

    def now(self) -> int:
        return self._clock.now() + self._ahead

    def monotonic(self) -> int:
        return self._clock.monotonic()

    async def wait(self, seconds: float) -> None:
        await self._clock.wait(seconds)


@pytest.mark.parametrize("ahead", [-3600, -400, 0, 400, 3600])
async def test_a_crash_loop_waits_though_the_exits_look_old_or_in_the_future(ahead: float) -> None:
    node = NodeInMemory()
    node.runtime = TroubledRuntime(SkewedClock(node.clock, ahead))
    async with node:
        node.create(a_pod("p", "run=0.1s, exit=1"))
        await node.passes(60)
        assert len(node.calls("start")) == len(["sandbox", "0 s", "0 s", "10 s", "30 s"])


@pytest.mark.parametrize("jump", [-3600, 3600])
async def test_a_jump_of_the_wall_clock_does_not_end_a_back_off(
    node: NodeInMemory, jump: float
) -> None:
    node.create(a_pod("p", "run=0.1s, exit=1"))
    for _ in range(12):
        await node.passes(5)
        node.clock.step(jump)
        node.agent.wake(PodUID("uid-p"))
    assert len(node.calls("start")) == len(["sandbox", "0 s", "0 s", "10 s", "30 s"])


async def test_a_crash_loop_says_how_long_it_waits(node: NodeInMemory) -> None:
    node.create(a_pod("p", "start=100ms, run=2s, exit=1"))
    await node.passes(14.2)
    assert _waiting_message(node, "p") == (
        "back-off 10s restarting failed container=a pod=p_ns(uid-p)"
    )
    await node.passes(22.1)
    assert _waiting_message(node, "p") == (
        "back-off 20s restarting failed container=a pod=p_ns(uid-p)"
    )


@pytest.mark.parametrize(
    ("policy", "exit_code", "looks"),
    [
        ("Never", 0, "Succeeded a:exit-0"),
        ("Never", 3, "Failed a:exit-3"),
        ("OnFailure", 0, "Succeeded a:exit-0"),
        ("OnFailure", 3, "Running a:exit-3(1)"),
        ("Always", 0, "Running a:exit-0(1)"),
    ],
)
async def test_what_becomes_of_a_pod_whose_container_ends(
    node: NodeInMemory, policy: str, exit_code: int, looks: str
) -> None:
    node.create(a_pod("p", f"run=2s, exit={exit_code}", policy=policy))
    await node.passes(8)
    assert node.looks("p") == looks


async def test_a_completed_pod_is_left_alone(node: NodeInMemory) -> None:
    node.create(a_pod("p", "run=2s", policy="Never"))
    await node.passes(3)
    node.runtime.calls.clear()
    await node.passes(600)
    assert node.looks("p") == "Succeeded a:exit-0"
    assert node.calls() == []
    assert await node.runtime.has("uid-p"), "its records stay until it is deleted"
    (life,) = node.agent.lives.all()
    assert life.state is PodWorkerState.FINISHED


async def test_init_containers_run_one_after_the_other(node: NodeInMemory) -> None:
    scripts = {"i": "run=2s", "j": "run=3s"}
    node.create(a_pod("p", init=["i", "j"], script=scripts))
    await node.passes(6)
    assert node.shown_at("p")[1:] == [
        (0.0, "Pending i:running j:PodInitializing a:PodInitializing"),
        (2.0, "Pending i:exit-0+ j:running a:PodInitializing"),
        (5.0, "Running i:exit-0+ j:exit-0+ a:running+"),
    ]


async def test_a_failed_init_container_ends_a_pod_without_restarts(node: NodeInMemory) -> None:
    node.create(a_pod("p", init=["i"], script={"i": "run=2s, exit=1"}, policy="Never"))
    await node.passes(6)
    assert node.looks("p") == "Failed i:exit-1 a:PodInitializing"
    assert node.calls("start") == ["start p sandbox", "start p i-0"]


async def test_sidecars_start_first_and_stop_last(node: NodeInMemory) -> None:
    scripts = {"a": "stop=3s", "s": "stop=1s", "t": "stop=1s"}
    node.create(a_pod("p", sidecars=["s", "t"], script=scripts))
    await node.passes(5)
    assert node.looks("p") == "Running s:running+ t:running+ a:running+"
    node.delete("p", grace=20)
    await node.passes(10)
    assert node.calls("start") == [f"start p {x}" for x in ("sandbox", "s-0", "t-0", "a-0")]
    assert node.calls("stop")[:4] == [
        "stop p a within 20",
        "stop p t within 17",
        "stop p s within 16",
        "stop p sandbox",
    ]
    assert node.looks("p") == "gone"


async def test_a_sidecar_does_not_keep_a_pod_alive(node: NodeInMemory) -> None:
    node.create(
        a_pod("p", sidecars=["s"], script={"a": "run=3s", "s": "stop-exit=4"}, policy="Never")
    )
    await node.passes(5)
    assert node.looks("p") == "Succeeded s:exit-4 a:exit-0"


async def test_a_pod_past_its_deadline_has_failed(node: NodeInMemory) -> None:
    node.create(with_deadline(a_pod("p"), 5))
    await node.passes(4.5)
    assert node.looks("p") == "Running a:running+"
    await node.passes(1)
    assert node.looks("p") == "Failed/DeadlineExceeded a:exit-0"
    assert node.events("p", "DeadlineExceeded", "Killing") == [
        "DeadlineExceeded: Pod was active on the node longer than the specified deadline",
        "Killing: Stopping container a",
    ]
    assert await node.runtime.running("uid-p") == []


@pytest.mark.parametrize(
    ("exit_code", "looks"),
    [(143, "Failed/Evicted a:exit-143"), (0, "Succeeded a:exit-0")],
)
async def test_what_the_node_ends_says_why_unless_it_succeeds(
    node: NodeInMemory, exit_code: int, looks: str
) -> None:
    node.create(a_pod("p", f"stop=2s, stop-exit={exit_code}"))
    await node.passes(1)
    node.agent.workers.kill(
        PodUID("uid-p"), Eviction(reason="Evicted", message="no memory"), grace_seconds=5
    )
    await node.passes(3)
    assert node.looks("p") == looks
    assert node.calls("stop")[0] == "stop p a within 5"


# Failed starts


async def test_a_failed_start_is_shown_at_once_and_tried_again(node: NodeInMemory) -> None:
    node.create(a_pod("p", "fail=ErrImageNeverPull"))
    await node.passes(0)
    assert node.looks("p") == "Pending a:ErrImageNeverPull"
    await node.passes(9.9)
    assert node.calls("start") == ["start p sandbox", "start p a-0"]
    await node.passes(0.2)
    assert node.calls("start") == ["start p sandbox", "start p a-0", "start p a-0"]


async def test_failed_starts_are_spread_over_half_their_wait() -> None:
    async with NodeInMemory(chance=1.0) as node:
        node.create(a_pod("p", "fail=ErrImageNeverPull"))
        await node.passes(14.9)
        assert len(node.calls("start")) == 2
        await node.passes(0.2)
        assert len(node.calls("start")) == 3


async def test_an_init_container_that_cannot_start_holds_the_others_up(node: NodeInMemory) -> None:
    node.create(a_pod("p", init=["i"], script={"i": "fail=ErrImageNeverPull"}))
    await node.passes(25)
    assert set(node.calls("start")) == {"start p sandbox", "start p i-0"}


async def test_a_failed_start_does_not_block_other_containers(node: NodeInMemory) -> None:
    scripts = {"a": "fail=CreateContainerConfigError"}
    node.create(a_pod("p", containers=["a", "b"], script=scripts))
    await node.passes(1)
    assert node.looks("p") == "Pending a:CreateContainerConfigError b:running+"


async def test_a_runtime_that_does_nothing_is_not_asked_again_and_again(node: NodeInMemory) -> None:
    node.runtime.lies = True
    node.create(a_pod("p"))
    await node.passes(59)
    assert len(node.calls("start")) == 2 * 6  # a sandbox and a container, every 10 s
    node.runtime.lies = False
    await node.passes(10)
    assert node.looks("p") == "Running a:running+"


async def test_a_runtime_that_ends_nothing_is_not_asked_again_and_again(node: NodeInMemory) -> None:
    node.create(a_pod("p"))
    await node.passes(1)
    node.runtime.lies = True
    node.delete("p")
    await node.passes(59)
    assert len(node.calls("stop")) == 2 * 6
    assert node.looks("p") == "Running a:running+"
    assert node.events("p", "FailedKillPod")[0].startswith(
        "FailedKillPod: error killing pod: the runtime still runs simulated://"
    )
    node.runtime.lies = False
    await node.passes(12)
    assert node.looks("p") == "gone"


async def test_a_runtime_that_is_down_is_waited_for(node: NodeInMemory) -> None:
    node.runtime.is_down = True
    node.create(a_pod("p"))
    await node.passes(25)
    assert node.events("p") == ["FailedSync: error determining status: no answer"] * 3
    assert node.event_seconds("p", "FailedSync") == [0, 10, 20]
    node.runtime.is_down = False
    await node.passes(5.1)
    assert node.looks("p") == "Running a:running+"


async def test_a_runtime_that_is_down_changes_no_status(node: NodeInMemory) -> None:
    node.create(a_pod("p"))
    await node.passes(1)
    node.runtime.is_down = True
    await node.passes(300)
    assert node.shown("p") == ["new", "Running a:running+"]


async def test_what_comes_while_the_agent_ends_is_for_the_next_one(node: NodeInMemory) -> None:
    node.create(a_pod("slow", "start=60s"))
    await node.passes(1)
    node.runtime.interruption = 5
    ending = asyncio.ensure_future(node.stop())
    await node.passes(1)
    assert not ending.done()
    node.create(a_pod("late"))
    node.deliver("api")
    await node.passes(5)
    await ending  # no exception left the dispatcher
    node.runtime.interruption = 0
    assert node.calls("start late") == []
    await node.start()
    await node.passes(1)
    assert node.looks("late") == "Running a:running+"


def _waiting_message(node: NodeInMemory, name: str) -> str:
    pod = node.pod(name)
    assert pod is not None
    assert pod.status.container_statuses is not None
    waiting = pod.status.container_statuses[0].state.waiting
    return "" if waiting is None else waiting.message


# References that the API server does not show yet


def seconds_of_starts(node: NodeInMemory, error: CannotStartError, failures: int) -> list[float]:
    """Let the next starts fail with the error; return when each start was tried."""
    tried: list[float] = []
    began = node.clock.now()

    def fail(*_: object) -> None:
        tried.append(round((node.clock.now() - began) / 1e9, 1))
        if len(tried) <= failures:
            raise error

    node.runtime.before_start = fail
    return tried


def late_reference() -> CannotStartError:
    message = 'configmap "c" not found'
    return CannotStartError("CreateContainerConfigError", message, retry_soon=True)


async def test_a_reference_that_comes_late_is_tried_again_after_half_a_second(
    node: NodeInMemory,
) -> None:
    tried = seconds_of_starts(node, late_reference(), failures=1)
    node.create(a_pod("p", "run=100s"))
    await node.passes(5)
    assert tried == [0.0, 0.5]
    assert node.looks("p") == "Running a:running+"
    assert node.events("p", "Failed") == ['Failed: Error: configmap "c" not found']


async def test_a_missing_reference_is_tried_less_and_less_often(node: NodeInMemory) -> None:
    tried = seconds_of_starts(node, late_reference(), failures=100)
    node.create(a_pod("p"))
    await node.passes(50)
    assert tried == [0.0, 0.5, 1.5, 3.5, 7.5, 15.5, 25.5, 35.5, 45.5]


async def test_other_failures_are_tried_again_after_ten_seconds(node: NodeInMemory) -> None:
    error = CannotStartError("RunContainerError", "no such program")
    tried = seconds_of_starts(node, error, failures=100)
    node.create(a_pod("p"))
    await node.passes(25)
    assert tried == [0.0, 10.0, 20.0]


async def test_after_a_success_the_first_retry_is_quick_again(node: NodeInMemory) -> None:
    began = seconds_of_starts(node, late_reference(), failures=3)
    node.create(a_pod("p", "run=100s"))
    await node.passes(10)
    assert began == [0.0, 0.5, 1.5, 3.5]
    await node.runtime.crash("uid-p")
    later = seconds_of_starts(node, late_reference(), failures=1)
    await node.passes(1)
    assert later == [0.0]
    await node.passes(10)
    assert node.looks("p") == "Running a:running+(1)"
