"""Default rules that depend on time, on a whole node with a settable clock."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from podstatus.alerts.ports import AlertReader
from podstatus.kube.objects.pod import PodUID
from podstatus.testing.apiserver import ApiServerThread
from tests.agent.e2e.alerting_node import (
    NODE,
    PODS,
    AlertingNode,
    SetClock,
    SkippingClock,
    is_running,
    until,
)
from tests.agent.e2e.alerts.hurried_rules import PROBED, hurried_rules
from tests.agent.e2e.faults.small_disk import small_disk
from tests.support.processes.agent_process import make_pod

pytestmark = pytest.mark.slow

__all__ = ["small_disk"]
WINDOW_SECONDS = 601
SECONDS = 240
FLAPS = "ready=+1s-1s+1s-1s+1s-1s+1s-1s+"
CRASHES_ONCE = "run=0.5s, exit=3; run=forever"


async def create(node: AlertingNode, name: str, script: str = "", **spec: Any) -> None:
    await node.ask("POST", PODS, make_pod(name, script, NODE, **spec))


def states(alerts: AlertReader) -> dict[str, str]:
    """By rule and subject, of the newest alert."""
    found = sorted(alerts.alerts().values(), key=lambda it: it.since)
    return {f"{it.rule} {it.subject.name}": it.state for it in found}


async def test_what_was_counted_is_forgotten_after_ten_minutes(
    tmp_path: Path, server: ApiServerThread
) -> None:
    counted = ["PodFlappingReady flaps", "PodCrashLooping crashes", "ForeignStatusWriter written"]

    clock = SkippingClock()
    node = AlertingNode(tmp_path, server, clock)
    async with node.running(hurried_rules(), seconds=SECONDS) as alerts:
        three = [{"name": f"c{number}", "image": "i"} for number in range(3)]
        await create(node, "flaps", FLAPS, containers=PROBED)
        # None of them waits for a back-off, but they are three.
        await create(node, "crashes", CRASHES_ONCE, containers=three)
        await create(node, "crashes-less", CRASHES_ONCE, containers=three[:2])
        await create(node, "written")
        await until(lambda: is_running(node, "written"))
        path = f"{PODS}/written/status"
        await node.ask("PATCH", path, {"status": {"reason": "Meddling"}})
        fires = dict.fromkeys(counted, "firing")
        await until(lambda: fires.items() <= states(alerts).items(), lambda: states(alerts))
        await until(lambda: is_ready(node, "flaps"))
        clock.skip(WINDOW_SECONDS)
        over = dict.fromkeys(counted, "resolved")
        await until(lambda: over.items() <= states(alerts).items(), lambda: states(alerts))
        assert "PodCrashLooping crashes-less" not in states(alerts)


async def test_a_clock_that_is_wrong_and_is_set_right(
    tmp_path: Path, server: ApiServerThread
) -> None:
    clock = SetClock()
    # A lease of four seconds is renewed every second: so often the server tells its time.
    node = AlertingNode(tmp_path, server, clock, node_lease_duration_seconds="4")
    skewed = f"NodeClockSkewed {NODE}"
    async with node.running(hurried_rules(), seconds=SECONDS) as alerts:
        clock.set_ahead(4)
        await asyncio.sleep(5.0)
        assert skewed not in states(alerts)
        clock.set_ahead(60)
        await until(lambda: states(alerts).get(skewed) == "firing", lambda: states(alerts))
        clock.set_ahead(0)
        await until(lambda: states(alerts).get(skewed) == "resolved", lambda: states(alerts))


async def test_a_container_with_an_unobserved_exit(tmp_path: Path, server: ApiServerThread) -> None:
    unknown = "ContainerStatusUnknown lost"

    node = AlertingNode(tmp_path, server)
    async with node.running(hurried_rules(), seconds=SECONDS) as alerts:
        await create(node, "lost", restartPolicy="Never")
        await create(node, "fails", "run=1s, exit=137", restartPolicy="Never")
        await until(lambda: is_running(node, "lost"))
        pod = await node.pod("lost")
        assert pod is not None
        # The files are removed without the agent.
        await node.runtime.remove_pod(PodUID(pod["metadata"]["uid"]))
        await until(lambda: states(alerts).get(unknown) == "firing", lambda: states(alerts))
        await node.ask("DELETE", f"{PODS}/lost")
        await until(lambda: states(alerts).get(unknown) == "resolved", lambda: states(alerts))
        assert "ContainerStatusUnknown fails" not in states(alerts)


async def test_a_disk_that_will_be_full_within_four_hours(
    small_disk: Path, server: ApiServerThread
) -> None:
    """A forecast takes five minutes, and a reading every ten seconds."""
    filling = f"NodeDiskFilling {NODE}"

    clock = SkippingClock()
    node = AlertingNode(small_disk, server, clock, eviction_hard="nodefs.available<1%")
    filler = small_disk / "filler"
    async with node.running(hurried_rules(), seconds=SECONDS) as alerts:
        filler.write_bytes(b"x" * 9 * 2**20)
        await asyncio.sleep(12.0)
        assert filling not in states(alerts)
        while states(alerts).get(filling) != "firing":
            clock.skip(50)  # more without a reading would be a gap: the usage is unknown then
            with filler.open("ab") as file:
                file.write(b"x" * 25_000)
            await asyncio.sleep(4.0)
        [fired] = [it for it in alerts.alerts().values() if it.rule == "NodeDiskFilling"]
        assert fired.annotations["summary"].endswith("will be full within four hours")
        filler.unlink()
        await until(lambda: states(alerts).get(filling) == "resolved", lambda: states(alerts))


async def is_ready(node: AlertingNode, name: str) -> bool:
    pod = await node.pod(name)
    conditions = [] if pod is None else pod["status"].get("conditions", [])
    return any((it["type"], it["status"]) == ("Ready", "True") for it in conditions)
