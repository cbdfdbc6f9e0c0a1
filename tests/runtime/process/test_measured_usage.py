"""The usage of a real container is what its process says that it did."""

import asyncio
import tempfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.usage import MemoryUsage, PodDiskUsage, Usage
from podstatus.runtime.process.cgroups.pod_cgroups import Cgroups
from podstatus.runtime.process.process_runtime import ProcessRuntime
from podstatus.runtime.process.records.layout import PodFolder
from tests.support.processes.process_runtime import open_process_runtime

MI, KI = 2**20, 2**10
MEMORY, WRITTEN, CHILDREN, THREADS, SOCKETS = 48 * MI, 3 * MI, 5, 2, 4
LOG_LINES, LOG_LINE = 2000, 100
PROGRAM = f"""
import json, os, resource, signal, socket, sys, threading, time
for _ in range({CHILDREN}):
    if os.fork() == 0:
        signal.pause()
for _ in range({THREADS}):
    threading.Thread(target=signal.pause, daemon=True).start()
sockets = [socket.socket() for _ in range({SOCKETS})]
eaten = bytearray({MEMORY})
for page in range(0, {MEMORY}, 4096):
    eaten[page] = 1
with open(os.environ["DATA"] + "/file", "wb") as file:
    file.write(os.urandom({WRITTEN}))
    file.flush()
    os.fsync(file.fileno())
for _ in range({LOG_LINES}):
    print("x" * {LOG_LINE - 1})
end = sum(os.times()[:2]) + 0.5
while sum(os.times()[:2]) < end:
    pass
used = resource.getrusage(resource.RUSAGE_SELF)
did = dict(
    cpu_seconds=used.ru_utime + used.ru_stime,
    page_faults=used.ru_minflt + used.ru_majflt,
    file_descriptors=len(os.listdir("/proc/self/fd")) - 1,
    open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
)
print("did " + json.dumps(did), flush=True)
signal.pause()
"""


class Did(msgspec.Struct):
    """What the process says that it did."""

    cpu_seconds: float
    page_faults: int
    file_descriptors: int
    open_files: int


def busy_pod() -> Pod:
    uid = f"busy-{uuid.uuid4()}"
    data = f"/tmp/{uid}"
    return from_document(
        {
            "metadata": {"name": "busy", "namespace": "ns", "uid": uid},
            "spec": {
                "containers": [
                    {
                        "name": "app",
                        "image": "x",
                        "command": ["/usr/bin/python3", "-I", "-S", "-c", PROGRAM],
                        "env": [{"name": "DATA", "value": data}],
                        "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}},
                        "volumeMounts": [{"name": "data", "mountPath": data}],
                    }
                ],
                "volumes": [{"name": "data", "emptyDir": {}}],
            },
        },
        Pod,
    )


class Scene:
    """A runtime in which the busy container has done its work."""

    def __init__(self, runtime: ProcessRuntime, uid: PodUID, did: Did) -> None:
        self.runtime = runtime
        self.uid = uid
        self.did = did

    async def usage(self) -> tuple[Usage, Usage]:
        """The usage of the pod and of its container."""
        pods = await self.runtime.usage()
        return pods[self.uid], self.runtime.container_usage()[self.uid]["app"]

    async def disk_usage(self) -> PodDiskUsage:
        """The disk usage, once it has been measured."""
        while True:
            await self.runtime.usage()
            if (disk := self.runtime.disk_usage().get(self.uid)) is not None:
                return disk
            await asyncio.sleep(0.02)


@asynccontextmanager
async def busy(cgroups: Cgroups | None) -> AsyncIterator[Scene]:
    pod = busy_pod()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        path = Path(folder)
        async with open_process_runtime(path, isolated=False, cgroups=cgroups) as runtime:
            await runtime.start_pod(pod)
            try:
                (container,) = pod.spec.containers or ()
                await runtime.start_container(pod, container, restart_count=0)
                yield Scene(runtime, pod.uid, await _result(PodFolder(path, pod.uid)))
            finally:
                await runtime.remove_pod(pod.uid)


async def _result(folder: PodFolder) -> Did:
    while True:
        for log in folder.containers.glob("*/0.log"):
            _, found, line = log.read_text().partition(" did ")
            if found and line.endswith("\n"):
                return msgspec.json.decode(line, type=Did)
        await asyncio.sleep(0.02)  # files have no notifications


def check_memory(memory: MemoryUsage, working_set: int | None, did: Did) -> None:
    assert MEMORY <= (memory.rss_bytes or 0) < MEMORY + 64 * MI
    assert (memory.rss_bytes or 0) <= (memory.usage_bytes or 0)
    assert MEMORY <= (working_set or 0) <= (memory.usage_bytes or 0) < 256 * MI
    faults = memory.page_faults or 0
    # Those of the children and of the start come in addition.
    assert 0.9 * did.page_faults <= faults < did.page_faults + 30_000
    assert 0 <= (memory.major_page_faults or 0) <= faults


async def check_usage(scene: Scene) -> None:
    pod, app = await scene.usage()
    for used in (pod, app):
        assert scene.did.cpu_seconds <= (used.cpu_seconds or 0.0) + 0.02
        assert (used.cpu_seconds or 0.0) < scene.did.cpu_seconds + 2.0
        assert used.processes == 1 + CHILDREN
        assert used.pids == 1 + CHILDREN + THREADS
        check_memory(used.memory, used.memory_bytes, scene.did)


async def check_disk(scene: Scene) -> None:
    disk = await scene.disk_usage()
    data, app = disk.volumes["data"], disk.containers["app"]
    assert data.is_complete
    assert WRITTEN <= data.bytes < WRITTEN + 256 * KI
    assert data.inodes == 3  # the folder, its mark and the file
    logs = LOG_LINES * LOG_LINE
    assert logs <= app.logs.bytes < 3 * logs  # with a prefix for each line
    assert app.rootfs.bytes < 64 * KI


async def check_system(scene: Scene) -> None:
    _, app = await scene.usage()
    system = scene.runtime.system_usage()
    runtime, pods = system["runtime"], system["pods"]
    assert runtime.processes == 2  # a shim and a monitor
    assert 0 < (runtime.cpu_seconds or 0.0) < 30
    assert 4 * MI < (runtime.memory_bytes or 0) < 256 * MI
    assert (pods.cpu_seconds or 0.0) >= (app.cpu_seconds or 0.0)
    assert (pods.memory.rss_bytes or 0) >= MEMORY


async def test_without_cgroups_the_processes_are_measured() -> None:
    async with busy(None) as scene:
        await check_usage(scene)
        await check_disk(scene)
        await check_system(scene)
        _, app = await scene.usage()
        assert (app.memory.limit_bytes, app.memory.swap_bytes) == (None, None)
        assert scene.runtime.details_reader()() == {}


async def test_with_cgroups_the_kernel_measures(cgroups: Cgroups) -> None:
    async with busy(cgroups) as scene:
        await check_usage(scene)
        await check_disk(scene)
        await check_system(scene)
        pod, app = await scene.usage()
        assert app.memory.limit_bytes == pod.memory.limit_bytes == 256 * MI
        check_pressure(pod, app)
        check_details(scene)


def check_pressure(pod: Usage, app: Usage) -> None:
    """For half a second of work it waited as long, for its CPU limit or for other processes."""
    if app.pressure.cpu is None or pod.pressure.cpu is None:
        return  # this kernel does not measure it
    for pressure in (pod.pressure.cpu, app.pressure.cpu):
        assert 50_000_000 < pressure.some.total_nanoseconds < 60_000_000_000


def check_details(scene: Scene) -> None:
    details = scene.runtime.details_reader()()[scene.uid]
    app = details.containers["app"]
    cpu, processes = app.cpu, app.processes
    assert app.cgroup.startswith(f"{details.pod.cgroup}/")
    assert (cpu.quota, cpu.period) == (50_000, 100_000)
    # Whether it was throttled depends on the load of the machine.
    throttled = cpu.throttled_periods or 0
    assert (cpu.periods or 0) >= max(1, throttled)
    assert (throttled > 0) == ((cpu.throttled_seconds or 0.0) > 0)
    total = (cpu.user_seconds or 0.0) + (cpu.system_seconds or 0.0)
    assert scene.did.cpu_seconds - 0.05 < total < scene.did.cpu_seconds + 2.0
    assert (app.memory.limit, app.memory.oom_kills) == (256 * MI, 0)
    # Each child has the three that there were when it was forked.
    assert processes.file_descriptors == scene.did.file_descriptors + 3 * CHILDREN
    assert processes.sockets == SOCKETS
    assert processes.max_open_files == scene.did.open_files
