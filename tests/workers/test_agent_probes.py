"""Probes by the agent on a whole node in virtual time: from a check to the API status."""

from typing import Any

from msgspec import structs

from podstatus.kube.objects.containers import HTTPGetAction, Probe
from podstatus.kube.objects.pod import Pod
from podstatus.probes.decide.check_result import CheckResult
from podstatus.probes.decide.targets import ProbeTarget
from tests.support.node_in_memory import NodeInMemory, a_pod

KILLING = "Killing: Container a failed {} probe, will be restarted"


class Containers:
    """Fake checks: results by probe type, success by default."""

    def __init__(self) -> None:
        self.good: dict[str, bool] = {}
        self.asked: list[tuple[str, str, str]] = []
        """Kind, container, the end of its ID."""

    async def __call__(self, target: ProbeTarget) -> CheckResult:
        key = target.key
        self.asked.append((key.kind.value, key.container, key.container_id))
        return CheckResult(success=self.good.get(key.kind.value, True), output="seen")


def probed(pod: Pod, **probes: int) -> Pod:
    """The pod with probes every second on each container, with these failure thresholds."""

    def with_probes(containers: Any) -> Any:
        fields = {
            f"{kind}_probe": Probe(
                http_get=HTTPGetAction(port=80), period_seconds=1, failure_threshold=failures
            )
            for kind, failures in probes.items()
        }
        return tuple(structs.replace(c, **fields) for c in containers or ())

    spec = structs.replace(
        pod.spec,
        containers=with_probes(pod.spec.containers),
        init_containers=with_probes(pod.spec.init_containers),
    )
    return structs.replace(pod, spec=spec)


async def test_readiness_follows_the_checks() -> None:
    found = Containers()
    found.good["readiness"] = False
    async with NodeInMemory(check=found) as node:
        node.create(probed(a_pod("p"), readiness=2))
        await node.passes(2.5)
        found.good["readiness"] = True
        await node.passes(2)
        found.good["readiness"] = False
        await node.passes(5)
        assert node.shown_at("p")[1:] == [
            (0.0, "Running a:running"),
            (3.0, "Running a:running+"),
            (6.0, "Running a:running"),
        ]
        failed = node.events("p", "Unhealthy")
        assert failed == ["Unhealthy: Readiness probe failed: seen"] * 8


async def test_a_container_has_to_start_before_it_is_asked_anything_else() -> None:
    found = Containers()
    found.good["startup"] = False
    async with NodeInMemory(check=found) as node:
        node.create(probed(a_pod("p"), startup=30, readiness=3, liveness=3))
        await node.passes(3.5)
        assert {kind for kind, _, _ in found.asked} == {"startup"}
        found.good["startup"] = True
        await node.passes(3)
        assert node.shown_at("p")[1:] == [
            (0.0, "Running a:running"),
            (4.0, "Running a:running+"),
        ]
        assert [kind for kind, _, _ in found.asked].count("startup") == 5


async def test_failed_startup_or_liveness_restarts_the_container_and_its_probes() -> None:
    for kind, ready in (("startup", ""), ("liveness", "+")):
        found = Containers()
        found.good[kind] = False
        async with NodeInMemory(check=found) as node:
            node.create(probed(a_pod("p", "stop-exit=2"), **{kind: 3}))
            await node.passes(2.5)
            found.good[kind] = True
            await node.passes(5)
            assert node.shown_at("p")[1:3] == [
                (0.0, f"Running a:running{ready}"),
                (2.0, f"Running a:running{ready}(1)"),
            ]
            assert node.looks("p") == "Running a:running+(1)"
            assert node.events("p", "Killing") == [KILLING.format(kind)]
            assert len({container_id for _, _, container_id in found.asked}) == 2


async def test_a_sidecar_that_has_not_started_holds_up_the_pod() -> None:
    found = Containers()
    found.good["startup"] = False
    async with NodeInMemory(check=found) as node:
        node.create(probed(a_pod("p", sidecars=("side",)), startup=30))
        await node.passes(3.5)
        assert node.looks("p") == "Pending side:running a:PodInitializing"
        found.good["startup"] = True
        await node.passes(2)
        assert node.looks("p") == "Running side:running+ a:running+"


async def test_an_agent_restart_keeps_containers_ready() -> None:
    found = Containers()
    async with NodeInMemory(check=found, chance=0.9) as node:
        pod = a_pod("p", sidecars=("side",))
        node.create(probed(pod, startup=3, readiness=3, liveness=3))
        await node.passes(5)
        shown = node.shown("p")
        assert shown[-1] == "Running side:running+ a:running+"
        found.asked.clear()
        await node.restart(after=2)
        await node.passes(0.8)
        assert found.asked == []
        await node.passes(20)
        assert node.shown("p") == shown
        assert {kind for kind, _, _ in found.asked} == {"readiness", "liveness"}
        assert node.calls("stop") == []


async def test_who_fails_after_a_restart_of_the_agent_is_shown_so_after_its_threshold() -> None:
    found = Containers()
    async with NodeInMemory(check=found) as node:
        node.create(probed(a_pod("p"), readiness=3))
        await node.passes(5)
        await node.stop()
        found.good["readiness"] = False
        await node.passes(10)
        await node.start()
        await node.passes(1.5)
        assert node.looks("p") == "Running a:running+"
        await node.passes(1)
        assert node.looks("p") == "Running a:running"


async def test_a_pod_that_stops_may_say_that_it_is_not_ready_and_is_not_restarted() -> None:
    found = Containers()
    async with NodeInMemory(check=found) as node:
        node.create(probed(a_pod("p", "stop=10s"), readiness=1, liveness=1))
        await node.passes(3.5)
        found.good = {"readiness": False, "liveness": False}
        node.delete("p")
        await node.passes(3)
        assert node.looks("p") == "Running a:running"
        await node.passes(20)
        assert node.looks("p") == "gone"
        asked = len(found.asked)
        assert node.events("p", "Killing") == ["Killing: Stopping container a"]
        await node.passes(60)
        assert len(found.asked) == asked


async def test_what_has_stopped_is_not_asked_though_the_pod_stays() -> None:
    found = Containers()
    async with NodeInMemory(check=found) as node:
        node.create(probed(a_pod("p"), readiness=1))
        await node.passes(3)
        node.delete("p")
        node.server_is_away()
        await node.passes(5)
        asked = len(found.asked)
        await node.passes(30)
        assert (len(found.asked), node.looks("p")) == (asked, "Running a:running+")


async def test_a_static_pod_that_is_taken_away_is_only_asked_whether_it_is_ready() -> None:
    found = Containers()
    async with NodeInMemory(check=found) as node:
        node.write_manifests(probed(a_pod("s", "stop=10s"), readiness=1, liveness=1))
        await node.passes(3)
        node.write_manifests()
        await node.passes(0.5)
        found.asked.clear()
        await node.passes(5)
        assert {kind for kind, _, _ in found.asked} == {"readiness"}
