"""The metrics of a whole node in virtual time."""

from podstatus.probes.decide.check_result import CheckError, CheckResult
from podstatus.probes.decide.targets import ProbeTarget
from podstatus.workers.dependencies import WorkerMetrics
from tests.support.node_in_memory import NodeInMemory, a_pod
from tests.support.probed_pods import a_probe, probed_pod
from tests.workers.unmanaged import a_static_pod, start_behind_its_back


def steps(work: WorkerMetrics) -> dict[str, int]:
    return {kind: spread.count for (kind,), spread in work.sync_durations.snapshot().items()}


async def test_each_sync_step_is_observed_with_its_operation(node: NodeInMemory) -> None:
    node.create(a_pod("p", "start=2s"))
    await node.passes(5)
    work = node.agent.worker_metrics
    assert work.sync_durations.snapshot()["create",].sum == 2.0
    assert steps(work)["create"] == 1
    node.delete("p")
    await node.passes(40)
    assert {"create", "sync", "kill", "terminated"} <= steps(work).keys()
    assert (steps(work)["kill"], steps(work)["terminated"]) == (1, 1)


async def test_time_to_running_is_observed_once_and_not_after_a_restart(node: NodeInMemory) -> None:
    node.create(a_pod("p", "start=2s"))
    await node.passes(100)
    work = node.agent.worker_metrics
    (start,) = work.pod_starts.snapshot().values()
    (first,) = work.worker_starts.snapshot().values()
    assert (start.count, start.sum, first.count, first.sum) == (1, 2.0, 1, 0.0)
    await node.restart()
    await node.passes(10)
    assert node.agent.worker_metrics.pod_starts.snapshot() == {}


async def test_starts_are_counted_by_type_and_failures_by_reason(node: NodeInMemory) -> None:
    node.create(a_pod("p", "run=1s, exit=1"))
    node.create(a_pod("q", "fail=RunContainerError"))
    await node.passes(5)
    work = node.agent.worker_metrics
    assert work.started_containers.snapshot()["container",] >= 3
    ((kind, reason),) = work.failed_container_starts.snapshot()
    assert (kind, reason) == ("container", "RunContainerError")


async def test_lists_are_counted_with_their_distance_also_those_that_fail() -> None:
    async with NodeInMemory(relist=1.0) as node:
        await node.passes(10)
        work = node.agent.runtime_metrics
        before = work.relists.snapshot()[()].count
        intervals = work.relist_intervals.snapshot()[()]
        assert intervals.count == before - 1
        assert round(intervals.sum) == 10
        node.runtime.is_down = True
        await node.passes(3)
        assert work.relists.snapshot()[()].count == before + 3
        assert work.failed_operations.snapshot()["list_podsandbox",] == 3


async def test_a_static_pod_that_comes_again_under_its_uid_is_counted(node: NodeInMemory) -> None:
    pod = a_static_pod("stop=3s")
    node.write_manifests(pod)
    await node.passes(2)
    node.write_manifests()
    await node.passes(1)
    node.write_manifests(pod)
    await node.passes(40)
    assert node.agent.worker_metrics.recreated_pods.snapshot() == {("true",): 1}


async def test_an_orphan_is_counted(node: NodeInMemory) -> None:
    await start_behind_its_back(node, a_pod("p"))
    await node.passes(10)
    assert node.agent.worker_metrics.orphans.snapshot() == {(): 1}


async def test_checks_are_counted_until_their_pod_is_gone() -> None:
    answers = iter([CheckResult(success=True), CheckResult(success=False), *[None] * 100])

    async def check(_: ProbeTarget) -> CheckResult:
        if (answer := next(answers)) is None:
            raise CheckError("no")
        return answer

    async with NodeInMemory(check=check) as node:
        node.create(probed_pod("p", readiness=a_probe(period_seconds=5)))
        await node.passes(12)
        (probes,) = node.agent.probe_metrics.pods.values()
        assert probes.results.snapshot() == {
            ("Readiness", result, "app", "p", "ns", "p"): 1
            for result in ("successful", "failed", "unknown")
        }
        (seconds,) = probes.seconds.snapshot().items()
        assert seconds[0] == ("Readiness", "app", "p", "ns")
        assert seconds[1].count == 2  # the duration of a failed start is meaningless
        node.delete("p")
        await node.passes(60)
        assert node.agent.probe_metrics.pods == {}
