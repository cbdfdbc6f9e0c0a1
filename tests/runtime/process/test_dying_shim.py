"""A container is to be started by a shim that has been killed, but has not died yet."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.kube.containers import Container
from podstatus.kube.pod_spec import PodSpec
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.layout import PodFolder
from podstatus.runtime.process.records import ShimRecord
from podstatus.testing.builders import make_pod
from tests.agent.mortal_node import read
from tests.runtime.process.machine import open_process_runtime

_APP = Container(name="app", image="busybox", command=("sleep", "600"))
_POD = structs.replace(make_pod("web", uid="uid-1"), spec=PodSpec(containers=(_APP,)))


def test_what_it_never_began_is_no_attempt(tmp_path: Path) -> None:
    folder = PodFolder(tmp_path, _POD.uid)

    async def scenario() -> None:
        async with open_process_runtime(tmp_path, isolated=False) as runtime:
            await runtime.start_pod(_POD)
            shim = read(folder.shim, ShimRecord).process.pid
            os.kill(shim, signal.SIGSTOP)
            starting = asyncio.ensure_future(runtime.start_container(_POD, _APP, restart_count=0))
            while not list(folder.containers.glob("*/launch.json")):  # noqa: ASYNC110 - a file
                await asyncio.sleep(0.001)
            os.kill(shim, signal.SIGKILL)
            with pytest.raises(CannotStartError, match="shim has ended"):
                await starting
            (listed,) = await runtime.list_pods()
            assert listed.facts.containers == ()
            assert list(folder.containers.iterdir()) == []
            # In another sandbox it is started as if nothing had been.
            await runtime.start_pod(_POD)
            await runtime.start_container(_POD, _APP, restart_count=0)
            (listed,) = await runtime.list_pods()
            assert [found.restart_count for found in listed.facts.containers] == [0]
            await runtime.remove_pod(_POD.uid)

    asyncio.run(scenario())
