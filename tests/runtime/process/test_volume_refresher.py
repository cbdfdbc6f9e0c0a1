"""ConfigMaps and secrets in volumes are kept up to date, however large they are."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.cluster import ConfigMap
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.volume_refresher import MAX_CONCURRENT_REFRESHES, Refresher
from podstatus.testing.builders import make_pod
from podstatus.testing.clock import FakeClock
from tests.runtime.process.preparer_scene import BWRAP, Setting
from tests.support.processes.process_pods import pod_of


def put(setting: Setting, version: str, data: dict[str, str]) -> None:
    metadata = {"name": "c", "uid": "u", "resourceVersion": version}
    setting.objects.config_maps["c"] = from_document(
        {"metadata": metadata, "data": data}, ConfigMap
    )


def pod_with(**volume: Any) -> Pod:
    return pod_of(volumes=[{"name": "v", **volume}])


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("waited in vain")


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path / "root", BWRAP)


def test_what_has_not_changed_is_not_looked_at(setting: Setting) -> None:
    pod = pod_with(configMap={"name": "c"})
    put(setting, "1", {"k": "old"})
    setting.start(pod)
    file = (setting.volumes / "v/..data").resolve() / "k"
    file.write_text("by hand")
    setting.refresh(pod)
    assert file.read_text() == "by hand"
    put(setting, "2", {"k": "new"})
    setting.refresh(pod)
    assert (setting.volumes / "v/k").read_text() == "new"


def test_an_object_that_is_made_again_is_another(setting: Setting) -> None:
    pod = pod_with(configMap={"name": "c", "optional": True})
    put(setting, "1", {"k": "old"})
    setting.start(pod)
    del setting.objects.config_maps["c"]
    setting.refresh(pod)
    assert not (setting.volumes / "v/k").exists()
    put(setting, "1", {"k": "new"})
    setting.refresh(pod)
    assert (setting.volumes / "v/k").read_text() == "new"


def test_a_volume_that_lost_its_contents_is_filled_again(setting: Setting) -> None:
    pod = pod_with(configMap={"name": "c"})
    put(setting, "1", {"k": "old"})
    setting.start(pod)
    (setting.volumes / "v/..data").unlink()
    setting.refresh(pod)
    assert (setting.volumes / "v/k").read_text() == "old"


async def test_the_loop_goes_on_while_a_large_volume_is_written(setting: Setting) -> None:
    """In the event loop, no other task would run between the first file and the last."""
    pod = pod_with(configMap={"name": "c"})
    put(setting, "1", {f"k{number}": "old" for number in range(1000)})

    async def turns() -> int:
        count, task = 0, asyncio.create_task(setting.preparer.prepare_pod(pod))
        while not task.done():
            await asyncio.sleep(0)
            count += 1
        await task
        return count

    assert await turns() > 30
    assert len(list((setting.volumes / "v").glob("k*"))) == 1000


def test_nothing_comes_back_after_a_pod_that_is_removed_while_it_is_written(
    setting: Setting,
) -> None:
    pod = pod_with(configMap={"name": "c"})
    put(setting, "1", {"k": "old"})
    setting.start(pod)
    put(setting, "2", {f"k{number}": "new" for number in range(1000)})
    setting.pass_time(1)  # versions are named by time
    volume = setting.volumes / "v"

    async def scenario() -> None:
        task = asyncio.create_task(setting.preparer.refresh_pod(pod))
        await until(lambda: len(list(volume.glob("..[0-9]*"))) == 2)
        await setting.preparer.remove_pod(pod.uid)
        written = len(list(volume.rglob("*")))
        await task
        assert len(list(volume.rglob("*"))) == written < 1000

    asyncio.run(scenario())
    assert (volume / "k").read_text() == "old"


@pytest.mark.parametrize(
    "volume",
    [
        {
            "configMap": {
                "name": "c",
                "items": [{"key": "big", "path": f"p{number}"} for number in range(50)],
            }
        },
        {
            "projected": {"sources": [{"configMap": {"name": "c"}} for _ in range(50)]},
        },
        {
            "downwardAPI": {
                "items": [
                    {"path": f"p{number}", "fieldRef": {"fieldPath": "metadata.annotations"}}
                    for number in range(100_001)
                ]
            }
        },
    ],
    ids=["one key at many paths", "one object many times", "annotations many times"],
)
def test_a_volume_is_bounded_before_it_is_made(setting: Setting, volume: dict[str, Any]) -> None:
    put(setting, "1", {"big": "x" * 1_000_000})
    with pytest.raises(CannotStartError, match="more than 100000 files or 33554432 bytes"):
        setting.start(pod_with(**volume))
    assert not (setting.volumes / "v/..data").exists()


def test_a_deep_path_is_refused(setting: Setting) -> None:
    put(setting, "1", {"k": "x"})
    item = {"key": "k", "path": "/".join("a" * 2000)}
    with pytest.raises(CannotStartError, match="more than 100 levels"):
        setting.start(pod_with(configMap={"name": "c", "items": [item]}))


class SlowRuntime:
    """A runtime where some pods take forever."""

    def __init__(self, *slow: str) -> None:
        self._slow = slow
        self.done: list[str] = []
        self.at_once = self.most = 0

    async def refresh_pod(self, pod: Pod) -> None:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0)
        if pod.name in self._slow:
            await asyncio.Event().wait()
        self.at_once -= 1
        self.done.append(pod.name)


async def test_a_slow_pod_keeps_no_other_waiting() -> None:
    async with asyncio.timeout(60):
        runtime = SlowRuntime("p0")
        pods = [make_pod(f"p{number}") for number in range(20)]
        refresher = Refresher(
            runtime.refresh_pod, lambda: pods, clock=FakeClock(), heartbeat=lambda: None
        )
        task = asyncio.create_task(refresher.refresh_once())
        await until(lambda: len(runtime.done) == 19)
        assert not task.done()
        assert runtime.most == MAX_CONCURRENT_REFRESHES
        task.cancel()
        await asyncio.wait([task])
