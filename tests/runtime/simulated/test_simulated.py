"""Behaviour of the simulated runtime beyond the promises of the port."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.runtime_facts import NetworkMode
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time
from podstatus.runtime.port import (
    CannotStartError,
    PodStats,
    ProbeResult,
    ReportsProbes,
    RunsHooks,
    RuntimeDownError,
)
from podstatus.runtime.simulated import SimulatedRuntime
from podstatus.runtime.simulated.model.addresses import AddressPool
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock
from tests.runtime.simulated.simulated_node import Node


def test_it_meters_and_probes_itself() -> None:
    runtime = SimulatedRuntime(FakeClock())
    assert isinstance(runtime, PodStats)
    assert isinstance(runtime, ReportsProbes)
    assert isinstance(runtime, RunsHooks)


async def test_attempts_of_a_crash_loop_differ_as_scripted(node: Node) -> None:
    pod, _ = await node.start("run=2s, exit=42; run=3s, exit=0; run=forever")
    await node.clock.advance(2)
    first = await node.newest(pod)
    assert (first.exit_code, first.reason) == (42, "Error")
    assert first.finished_at - first.started_at == 2_000_000_000
    await node.again(pod, restart_count=1)
    await node.clock.advance(3)
    assert (await node.newest(pod)).reason == "Completed"
    await node.again(pod, restart_count=2)
    await node.clock.advance(1000)
    assert not (await node.newest(pod)).reason


async def test_a_start_takes_as_long_as_scripted_and_lists_nothing(node: Node) -> None:
    pod = make_pod(annotations={"podstatus.dev/simulate": "start=2s"})
    await node.runtime.start_pod(pod)
    async with node.meanwhile(node.again(pod, restart_count=0)) as start:
        await node.clock.advance(1.9)
        assert not start.done()
        assert not (await node.facts(pod)).containers
        await node.clock.advance(0.1)
        assert start.done()
    began = await node.newest(pod)
    assert began.started_at == Time.from_unix_nanos(node.clock.now())


async def test_a_start_that_hangs_ends_when_it_is_cancelled(node: Node) -> None:
    pod = make_pod(annotations={"podstatus.dev/simulate": "start=never"})
    await node.runtime.start_pod(pod)
    async with node.meanwhile(node.again(pod, restart_count=0)) as start:
        await node.clock.advance(10**6)
        assert not start.done()
    assert start.cancelled()
    assert not (await node.facts(pod)).containers


@pytest.mark.parametrize(
    ("script", "reason", "message", "listed"),
    [
        ("fail=StartError", "RunContainerError", "failed to start container 'app'", True),
        ('fail=StartError, message="no such file"', "RunContainerError", "no such file", True),
        (
            "fail=ErrImageNeverPull",
            "ErrImageNeverPull",
            'Container image "app:1" is not present with pull policy of Never',
            False,
        ),
        ("fail=CreateContainerError", "CreateContainerError", "its script has fail=", False),
        (
            "run=3",
            "CreateContainerConfigError",
            "invalid value run=3; expected a duration such as",
            False,
        ),
    ],
)
async def test_what_cannot_be_started_says_why(
    node: Node, script: str, reason: str, message: str, listed: bool
) -> None:
    with pytest.raises(CannotStartError) as caught:
        await node.start(script)
    assert caught.value.reason == reason
    assert message in caught.value.message
    attempts = (await node.facts(make_pod())).containers
    assert [(a.exit_code, a.reason) for a in attempts] == [(128, "StartError")] * listed
    if listed:
        assert attempts[0].message == caught.value.message


async def test_an_annotation_about_no_container_keeps_all_from_starting(node: Node) -> None:
    pod = make_pod(annotations={"simulate.podstatus.dev/ap": "run=2s"})
    await node.runtime.start_pod(pod)
    with pytest.raises(CannotStartError) as caught:
        await node.again(pod, restart_count=0)
    assert caught.value.reason == "CreateContainerConfigError"
    assert "simulate.podstatus.dev/ap names no container" in caught.value.message
    assert caught.value.message.endswith("; containers are app")
    assert (await node.facts(pod)).containers == ()


async def test_a_container_needs_a_started_pod(node: Node) -> None:
    with pytest.raises(CannotStartError, match="no ready sandbox; start the pod first"):
        await node.again(make_pod(), restart_count=0)


async def test_killing_may_take_its_time_or_never_succeed(node: Node) -> None:
    slow, slow_id = await node.start("stop=never, kill=10s", "slow")
    stuck, stuck_id = await node.start("stop=never, kill=never", "stuck")
    stop = node.runtime.stop_container
    async with (
        node.meanwhile(stop(slow.uid, slow_id, grace_seconds=3)) as one,
        node.meanwhile(stop(stuck.uid, stuck_id, grace_seconds=3)) as other,
        node.meanwhile(node.runtime.stop_pod(stuck.uid)) as pod,
    ):
        await node.clock.advance(12.9)
        assert not one.done()
        await node.clock.advance(0.1)
        assert one.done()
        await node.clock.advance(10**6)
        assert not other.done()
        assert not pod.done()
    assert (await node.newest(slow)).exit_code == 137


async def test_facts_are_as_requested(node: Node) -> None:
    pod, container_id = await node.start(restart_count=4)
    facts = await node.facts(pod)
    (found,) = facts.containers
    assert (found.id, found.restart_count, found.image) == (container_id, 4, "app:1")
    assert found.image_ref.startswith("app:1@sha256:")
    assert found.id.startswith("simulated://")
    assert facts.ips == (facts.sandboxes[0].ip,) == ("10.88.0.2",)


async def test_a_pod_in_the_network_of_its_node_has_no_address(node: Node) -> None:
    pod = make_pod()
    pod = structs.replace(pod, spec=structs.replace(pod.spec, host_network=True))
    await node.runtime.start_pod(pod)
    facts = await node.facts(pod)
    assert (facts.ips, facts.sandboxes[0].network) == ((), NetworkMode.NODE)


def test_addresses_are_unique_and_come_again_late() -> None:
    addresses = AddressPool("10.0.0.0/29")
    taken = [addresses.allocate() for _ in range(6)]
    assert taken == ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", None]
    addresses.release("10.0.0.4")
    assert addresses.allocate() == "10.0.0.4"
    addresses.release("10.0.0.2")
    addresses.release("10.0.0.6")
    assert [addresses.allocate(), addresses.allocate()] == ["10.0.0.6", "10.0.0.2"]


async def test_a_stopped_pod_gives_its_address_back_and_gets_another_sandbox(node: Node) -> None:
    pod, _ = await node.start()
    await node.runtime.stop_pod(pod.uid)
    assert (await node.facts(pod)).ips == ()
    await node.runtime.start_pod(pod)
    await node.again(pod, restart_count=1)
    facts = await node.facts(pod)
    assert facts.ips == ("10.88.0.3",)
    assert [sandbox.attempt for sandbox in facts.sandboxes] == [1, 0]
    assert [attempt.active for attempt in facts.containers] == [True, False]


async def test_in_a_new_sandbox_each_attempt_is_a_new_one(node: Node) -> None:
    pod, first = await node.start()
    await node.runtime.stop_pod(pod.uid)
    await node.runtime.start_pod(pod)
    assert await node.again(pod, restart_count=0) != first


async def test_addresses_are_given_back_by_pods_that_stop_and_by_starts_that_fail(
    tmp_path: Path,
) -> None:
    node = Node(tmp_path / "records")
    node.restart(network="10.0.0.0/29")
    shutil.rmtree(tmp_path / "records")
    for _ in range(10):
        with pytest.raises(RuntimeDownError):
            await node.runtime.start_pod(make_pod())
    (tmp_path / "records").mkdir()
    pods = [make_pod(f"p{number}") for number in range(6)]
    for pod in pods[:5]:
        await node.runtime.start_pod(pod)
    with pytest.raises(CannotStartError, match="all addresses of simulated pods are in use"):
        await node.runtime.start_pod(pods[5])
    await node.runtime.stop_pod(pods[2].uid)
    await node.runtime.start_pod(pods[5])
    await node.runtime.remove_pod(pods[0].uid)
    await node.runtime.start_pod(pods[2])
    assert len({(await node.facts(pod)).ips for pod in pods[1:]}) == 5


async def test_a_container_that_is_asked_again_gets_no_more_time(node: Node) -> None:
    slow, slow_id = await node.start("stop=5s", "slow")
    deaf, deaf_id = await node.start("stop=never", "deaf")
    stop, began = node.runtime.stop_container, node.clock.now()
    for grace in (10, 60):
        async with (
            node.meanwhile(stop(slow.uid, slow_id, grace_seconds=grace)),
            node.meanwhile(stop(deaf.uid, deaf_id, grace_seconds=grace)),
        ):
            await node.clock.advance(3)
    await node.clock.advance(100)
    ends = [(await node.newest(pod)).finished_at.unix_nanos() for pod in (slow, deaf)]
    assert [(end - began) / 1e9 for end in ends] == [5, 10]


async def test_an_attempt_that_runs_is_not_forgotten(node: Node) -> None:
    pod, container_id = await node.start()
    await node.runtime.remove_container(pod.uid, container_id)
    assert (await node.newest(pod)).id == container_id


@pytest.mark.parametrize(
    ("script", "hook", "seconds", "success"),
    [
        ("", "postStart", 0, True),
        ("post-start=2s, pre-stop=4s, pre-stop-exit=1", "postStart", 2, True),
        ("post-start=2s, post-start-exit=6", "postStart", 2, False),
        ("post-start=2s, post-start-exit=6, pre-stop=4s", "preStop", 4, True),
        ("pre-stop-exit=255", "preStop", 0, False),
        ("run=3s, pre-stop=4s", "preStop", 4, False),
        ("run=0s", "postStart", 0, False),
    ],
)
async def test_hooks_take_the_time_and_end_as_scripted_if_their_container_runs(
    node: Node, script: str, hook: str, seconds: float, *, success: bool
) -> None:
    pod, made = await node.start(script)
    async with node.meanwhile(node.runtime.run_hook(pod.uid, made, hook)) as running:
        assert running.done() == (seconds == 0)
        await node.clock.advance(seconds)
        assert await running is success


async def test_there_are_no_hooks_of_what_is_not_there(node: Node) -> None:
    pod, _ = await node.start()
    assert not await node.runtime.run_hook(pod.uid, "simulated://other", "preStop")


async def next_results(
    node: Node, results: AsyncIterator[ProbeResult], seconds: float
) -> list[str]:
    """Return the probe results while this much time passes."""
    received: list[ProbeResult] = []

    async def read() -> None:
        while True:
            received.append(await anext(results))

    async with node.meanwhile(read()):
        await node.clock.advance(seconds)
    return [f"{'+' if result.success else '-'}{result.probe}" for result in received]


async def test_probes_say_over_time_what_is_scripted(node: Node) -> None:
    results = node.runtime.probe_results()
    await node.start("started=?4s+, ready=-8s+5s-, alive=+20s-", probed=True)
    assert await next_results(node, results, 3.9) == []
    assert await next_results(node, results, 0.1) == ["+startup", "-readiness", "+liveness"]
    assert await next_results(node, results, 3.9) == []
    assert await next_results(node, results, 0.2) == ["+readiness"]
    assert await next_results(node, results, 5) == ["-readiness"]
    assert await next_results(node, results, 10) == ["-liveness"]


async def test_readiness_flaps_with_a_period_and_each_flip_is_reported_once(node: Node) -> None:
    results = node.runtime.probe_results()
    await node.start("ready=+5s-5s*", probed=True)
    received = await next_results(node, results, 29)
    flips = [text for text in received if "readiness" in text]
    assert flips == ["+readiness", "-readiness"] * 3


async def test_a_late_subscriber_gets_current_results_of_running_containers(node: Node) -> None:
    await node.start("ready=-4s+", probed=True)
    pod, container_id = await node.start("", "other", probed=True)
    await node.runtime.stop_container(pod.uid, container_id, grace_seconds=0)
    await node.clock.advance(5)
    received = await next_results(node, node.runtime.probe_results(), 1)
    assert received == ["+startup", "+readiness", "+liveness"]


async def test_readiness_can_go_when_a_container_is_asked_to_end(node: Node) -> None:
    pod, container_id = await node.start("stop=5s, stop-ready=-", probed=True)
    results = node.runtime.probe_results()
    await next_results(node, results, 1)
    stop = node.runtime.stop_container(pod.uid, container_id, grace_seconds=30)
    async with node.meanwhile(stop):
        assert await next_results(node, results, 1) == ["-readiness"]


async def test_a_flip_of_a_probe_is_no_hint_to_look_at_the_pod(node: Node) -> None:
    await node.start("ready=+1s-1s*", probed=True)
    async with node.meanwhile(anext(node.runtime.changes())) as change:
        await node.clock.advance(10)
        assert not change.done()


async def test_pods_that_change_often_are_one_hint_for_who_looks_late(node: Node) -> None:
    changes = node.runtime.changes()
    await node.start("", "a")
    await node.start("", "b")
    assert [await anext(changes), await anext(changes)] == ["uid-a", "uid-b"]
    async with node.meanwhile(anext(changes)) as more:
        assert not more.done()


async def test_all_subscribers_are_notified(node: Node) -> None:
    pod, _ = await node.start("run=3s")
    async with (
        node.meanwhile(anext(node.runtime.changes())) as one,
        node.meanwhile(anext(node.runtime.changes())) as other,
    ):
        await node.clock.advance(3)
        assert [one.result(), other.result()] == [pod.uid] * 2


async def test_usage_follows_scripts_and_requests(node: Node) -> None:
    asks = ResourceRequirements(requests={"cpu": Quantity("2"), "memory": Quantity("1Gi")})
    container = Container(name="app", resources=asks)
    large = make_pod("large")
    large = structs.replace(large, spec=structs.replace(large.spec, containers=(container,)))
    await node.runtime.start_pod(large)
    await node.again(large, restart_count=0)
    pod, _ = await node.start("run=10s, cpu=500m, memory=64Mi", "small")
    await node.clock.advance(4)
    used = await node.runtime.usage()
    assert (used[large.uid].cpu_cores, used[large.uid].memory_bytes) == (1.0, 2**29)
    small = used[pod.uid]
    assert (small.cpu_cores, small.cpu_seconds, small.memory_bytes) == (0.5, 2.0, 64 * 2**20)
    assert small.pids == 1
    (inside,) = node.runtime.container_usage()[pod.uid].values()
    assert (inside.cpu_cores, inside.cpu_seconds, inside.memory_bytes) == (0.5, 2.0, 2**26)
    await node.clock.advance(100)
    small = (await node.runtime.usage())[pod.uid]
    assert (small.cpu_cores, small.cpu_seconds, small.memory_bytes) == (0, 5.0, 0)


async def test_containers_run_on_while_no_agent_is_there(tmp_path: Path) -> None:
    node = Node(tmp_path)
    short, _ = await node.start("run=3s, exit=3; run=forever", "short")
    stopping, stopping_id = await node.start("stop=never", "stopping")
    async with node.meanwhile(
        node.runtime.stop_container(stopping.uid, stopping_id, grace_seconds=5)
    ):
        began = node.clock.now()
    await node.clock.advance(60)
    node.restart()
    ends = [await node.newest(short), await node.newest(stopping)]
    assert [(end.exit_code, end.reason) for end in ends] == [(3, "Error"), (137, "Error")]
    after = [end.finished_at.unix_nanos() - began for end in ends]
    assert after == [3_000_000_000, 5_000_000_000]
    await node.again(short, restart_count=1)
    assert (await node.newest(short)).restart_count == 1


async def test_a_new_agent_reports_later_exits_and_allocates_no_address_twice(
    tmp_path: Path,
) -> None:
    node = Node(tmp_path)
    pod, _ = await node.start("run=10s")
    node.restart()
    other, _ = await node.start("", "other")
    assert (await node.facts(other)).ips != (await node.facts(pod)).ips
    async with node.meanwhile(anext(node.runtime.changes())) as change:
        await node.clock.advance(10)
        assert change.result() == pod.uid


async def test_a_start_that_an_agent_died_over_is_found_by_the_next(tmp_path: Path) -> None:
    node = Node(tmp_path)
    pod, container_id = await node.start()
    node.restart()
    assert await node.again(pod, restart_count=0) == container_id


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b'{"format": 2, "uid": "uid-broken", "namespace": "", "name": ""}',
        b'{"format": 1, "uid": "uid-other", "namespace": "", "name": ""}',
        b"[" * 100_000,
    ],
    ids=["empty", "cut", "no text", "null", "newer", "another pod's", "deep"],
)
async def test_a_broken_record_is_set_aside_and_takes_no_other_down(
    text: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node(tmp_path)
    pod, _ = await node.start()
    (tmp_path / "uid-broken.json").write_bytes(text)
    node.restart()
    assert [found.uid for found in await node.runtime.list_pods()] == [pod.uid]
    assert (tmp_path / "uid-broken.json.broken").read_bytes() == text
    node.restart()
    assert len(caplog.records) == 1
    assert "uid-broken.json.broken" in caplog.records[0].getMessage()


async def test_a_record_that_was_cut_at_any_place_is_set_aside(tmp_path: Path) -> None:
    node = Node(tmp_path)
    await node.start("ready=-4s+5s*, run=3s", probed=True)
    file = tmp_path / "uid-pod.json"
    whole = file.read_bytes()
    for length in range(0, len(whole), 7):
        file.write_bytes(whole[:length])
        node.restart()
        assert not await node.runtime.list_pods()
    file.write_bytes(whole)
    node.restart()
    assert len(await node.runtime.list_pods()) == 1


async def test_records_are_for_their_owner_alone_and_go_with_the_pod(tmp_path: Path) -> None:
    node = Node(tmp_path / "new")
    pod, _ = await node.start()
    (file,) = (tmp_path / "new").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    await node.runtime.remove_pod(pod.uid)
    assert not list((tmp_path / "new").iterdir())


def test_no_uid_leads_out_of_the_folder(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        pod = make_pod(uid="../../outside/%2e")
        await node.runtime.start_pod(pod)
        node.restart()
        assert [found.uid for found in await node.runtime.list_pods()] == [pod.uid]

    asyncio.run(story(Node(tmp_path / "in")))
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RuntimeDownError, match=r"cannot use .*file.*; make it writable, or choose"):
        SimulatedRuntime(FakeClock(), folder=tmp_path / "file")


async def test_what_cannot_be_written_has_not_happened(tmp_path: Path) -> None:
    node = Node(tmp_path / "records")
    pod, container_id = await node.start()
    before = await node.runtime.list_pods()
    shutil.rmtree(tmp_path / "records")
    with pytest.raises(RuntimeDownError, match="cannot use"):
        await node.start("", "other")
    with pytest.raises(RuntimeDownError, match="cannot use"):
        await node.runtime.stop_container(pod.uid, container_id, grace_seconds=1)
    assert await node.runtime.list_pods() == before
    (tmp_path / "records").mkdir()
    other, _ = await node.start("", "other")
    assert (await node.facts(other)).ips == ("10.88.0.4",)


async def test_a_grace_of_any_length_is_taken(tmp_path: Path) -> None:
    node = Node(tmp_path)
    pod, container_id = await node.start()
    await node.runtime.stop_container(pod.uid, container_id, grace_seconds=float("inf"))
    node.restart()
    assert (await node.newest(pod)).exit_code == 0
    again = await node.again(pod, restart_count=1)
    await node.runtime.stop_container(pod.uid, again, grace_seconds=-1)
