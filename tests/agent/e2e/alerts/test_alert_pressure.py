"""A node that is short of memory or process IDs, and is not any more: NodePressure in both
directions, on a whole agent. Of the disk: test_default_rules.py, which fills one."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from podstatus.agent.compose import node_services
from podstatus.alerts.model import Alert
from podstatus.alerts.ports import AlertReader
from podstatus.node.decide.readings import MachineReading
from podstatus.node.machine.reader import read_machine
from podstatus.testing.apiserver import ApiServerThread
from tests.agent.e2e.alerting_node import NODE, AlertingNode, SkippingClock, until
from tests.agent.e2e.alerts.hurried_rules import hurried_rules
from tests.support.processes.agent_process import SECONDS

pytestmark = pytest.mark.slow

RULE = "NodePressure"
MEMORY: dict[str, Any] = {"memory_available_bytes": 99 << 20}
"""The kubelet's own threshold is 100 MiB."""
PIDS: dict[str, Any] = {"max_pids": 1000, "pids": 951}
PRESSED = [
    (MEMORY, {"MemoryPressure"}, "memory"),
    (PIDS, {"PIDPressure"}, "process IDs"),
    (MEMORY | PIDS, {"MemoryPressure", "PIDPressure"}, "memory and process IDs"),
]
PLENTY: dict[str, Any] = {"memory_available_bytes": 1 << 30, "max_pids": 1000, "pids": 100}


class Machine:
    """This machine, but for what is said."""

    def __init__(self) -> None:
        self.differs = PLENTY

    def read(self) -> MachineReading:
        return structs.replace(read_machine(), **self.differs)


async def pressures(node: AlertingNode) -> set[str]:
    """Those that the API server shows, the disk's aside: of that there is only this machine's."""
    active = {kind for kind, it in (await node.conditions()).items() if it["status"] == "True"}
    return active & {"MemoryPressure", "PIDPressure"}


def newest(alerts: AlertReader) -> Alert | None:
    found = [it for it in alerts.alerts().values() if it.rule == RULE]
    return max(found, key=lambda it: it.since, default=None)


async def test_memory_and_process_ids_that_run_out_and_are_there_again(
    tmp_path: Path, server: ApiServerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, machine = SkippingClock(), Machine()
    monkeypatch.setattr(node_services, "read_machine", machine.read)
    node = AlertingNode(
        tmp_path,
        server,
        clock,
        eviction_hard="memory.available<100Mi,pid.available<5%",
        eviction_pressure_transition_period="1s",
    )
    async with node.running(hurried_rules(), seconds=SECONDS) as alerts:

        async def comes_to(wanted: set[str], state: str) -> bool:
            """After the machine was looked at again, which it is every 10 s."""
            clock.skip(10)
            await asyncio.sleep(0.2)
            alert = newest(alerts)
            return await pressures(node) == wanted and (alert and alert.state) == state

        for differs, wanted, short_of in PRESSED:
            machine.differs = PLENTY | differs
            await until(lambda wanted=wanted: comes_to(wanted, "firing"))  # type: ignore[misc]
            fired = newest(alerts)
            assert fired is not None
            assert fired.annotations["summary"] == f"{NODE} is short of {short_of}"
            machine.differs = PLENTY
            await until(lambda: comes_to(set(), "resolved"))
