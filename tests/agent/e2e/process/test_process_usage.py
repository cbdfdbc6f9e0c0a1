"""The usage of real containers reaches `kubectl top` and the default alert rules.

`kubectl top` agrees with the figures of the kernel, with cgroups and without.

A container uses CPU time itself and by children that end, and holds memory. Meanwhile the test
reads the counters of its process and of the machine, and computes the rates for the interval that
the metrics name. Times in the API are whole seconds, so the interval may have begun up to a second
later: the agreement is with the rates of all of these intervals.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest

from podstatus.agent.compose.runtime import cgroups_name
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time
from podstatus.runtime.process.cgroups.discovery import CgroupsUnavailableError, find_cgroups
from tests.support.processes.agent_process import Document, until
from tests.support.processes.kubectl import HOW_TO_GET_IT, KUBECTL, Kubectl
from tests.support.processes.process_node import (
    PYTHON,
    ProcessNode,
    command_pod,
    need_nobody,
    process_node,
    skip,
)

pytestmark = pytest.mark.slow

WINDOW_SECONDS = 10
MEBIBYTES = 256
TOLERANCE = 0.05
CHILD = "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done"
"""No fork of the process: without cgroups, its memory would count twice."""
BURNS = f"""
import os, time
CHILD = {CHILD!r}
held = os.urandom(1 << 20) * {MEBIBYTES}
print("pid", os.getpid(), flush=True)
def burn():
    end = time.process_time() + 0.03
    while time.process_time() < end:
        pass
while True:
    began = time.monotonic()
    burn()
    child = os.posix_spawn("/bin/sh", ["sh", "-c", CHILD], os.environ)
    os.waitpid(child, 0)
    time.sleep(max(0, began + 0.2 - time.monotonic()))
"""
"""About 0.3 cores, half of them in children that end."""
_TICKS = os.sysconf("SC_CLK_TCK")

HOLDS = "import os, time; held = os.urandom(1 << 20) * 60; time.sleep(600)"
IDLE = "import time; time.sleep(600)"


class Sample(msgspec.Struct, frozen=True):
    """What the kernel said at one time."""

    at: float
    cpu_seconds: float
    """Cumulative."""
    memory_bytes: int


class Recorder:
    """Reads the kernel's figures all the time."""

    def __init__(self, read: Callable[[], tuple[float, int]]) -> None:
        self._read = read
        self.samples: list[Sample] = []

    def sample(self) -> None:
        cpu, memory = self._read()
        self.samples.append(Sample(time.time(), cpu, memory))

    def rates(self, at: float) -> list[float]:
        """The CPU rates of the windows that end in the second from `at`."""
        ends = self._within_second(at)
        begins = [self._at(end.at - WINDOW_SECONDS) for end in ends]
        return [
            (end.cpu_seconds - begin.cpu_seconds) / (end.at - begin.at)
            for begin, end in zip(begins, ends, strict=True)
        ]

    def memory(self, at: float) -> list[float]:
        """The memory in the second from `at`."""
        return [float(it.memory_bytes) for it in self._within_second(at)]

    def _within_second(self, at: float) -> list[Sample]:
        # A test that did not get the CPU for a second has none; then the nearest one will do.
        found = [it for it in self.samples if at <= it.at <= at + 1]
        return found or [self._at(at + 0.5)]

    def _at(self, at: float) -> Sample:
        return min(self.samples, key=lambda sample: abs(sample.at - at))


def read_process(pid: int) -> tuple[float, int]:
    """CPU time with that of children that ended, and resident memory."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return sum(map(int, fields[11:15])) / _TICKS, resident * os.sysconf("SC_PAGE_SIZE")


def read_machine() -> tuple[float, int]:
    """CPU time in which processors were not idle, and memory that is not available."""
    user, nice, system, _idle, _iowait, *others = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    )
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    memory = {key: int(value) << 10 for key, value, *_ in lines}
    busy = (user + nice + system + sum(others)) / _TICKS
    return busy, memory["MemTotal:"] - memory["MemAvailable:"]


@contextmanager
def recording(*recorders: Recorder) -> Iterator[None]:
    """Let the recorders read until the end."""
    stopped = threading.Event()

    def run() -> None:
        while not stopped.wait(0.05):
            for recorder in recorders:
                recorder.sample()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


class Metered:
    """A node with the container, and what kubectl shows of both."""

    def __init__(self, node: ProcessNode, home: Path) -> None:
        self.node = node
        cluster = node.start_ready()
        cluster.create(command_pod("burns", PYTHON, "-I", "-c", BURNS))
        cluster.wait_ready("burns")
        self._kubectl = Kubectl(cluster.access, home)
        self._pid = int(node.wait_for_log("burns", "pid").split()[-1])
        self.process = Recorder(lambda: read_process(self._pid))
        self.machine = Recorder(read_machine)

    def metrics(self, resource: str, name: str) -> tuple[float, Document]:
        """The metrics of an object, with their time."""
        ran = self._kubectl.run("get", f"{resource}.metrics.k8s.io", name, "-o", "json")
        if ran.code:
            return 0.0, {}
        found = json.loads(ran.out)
        return Time.parse(found["timestamp"]).unix_nanos() / 1e9, found

    def check(self, since: float) -> None:
        """Compare what is printed with what was recorded."""
        at, metrics = until(lambda: self._complete("pods", "burns", since))
        [container] = metrics["containers"]
        assert_agrees(container["usage"], self.process, at)
        at, metrics = until(lambda: self._complete("nodes", self.node.node, since))
        assert_agrees(metrics["usage"], self.machine, at)
        self._check_print()

    def _complete(self, resource: str, name: str, since: float) -> tuple[float, Document] | None:
        """The metrics, once their whole window has been recorded."""
        at, metrics = self.metrics(resource, name)
        is_complete = at >= since + WINDOW_SECONDS + 1 and time.time() > at + 1.1
        return (at, metrics) if is_complete else None

    def _check_print(self) -> None:
        """`kubectl top` prints the same figures, in millicores and mebibytes."""

        def look() -> bool:
            (before, metrics), node = self.metrics("pods", "burns"), self._top("node")
            pod, (after, _) = (
                self._top("pod", "burns", "--containers"),
                self.metrics("pods", "burns"),
            )
            [container] = metrics["containers"]
            assert node[0][0] == self.node.node
            return before == after and pod == [["burns", "app", *printed(container["usage"])]]

        until(look)

    def _top(self, *words: str) -> list[list[str]]:
        return [line.split() for line in self._kubectl("top", *words).splitlines()[1:]]


def printed(usage: Document) -> list[str]:
    memory = Quantity(usage["memory"]).value >> 20
    return [f"{Quantity(usage['cpu']).milli_value}m", f"{memory}Mi"]


def assert_agrees(usage: Document, recorder: Recorder, at: float) -> None:
    cores = Quantity(usage["cpu"]).nanos / 1e9
    for value, recorded in (
        (cores, recorder.rates(at)),
        (float(Quantity(usage["memory"]).value), recorder.memory(at)),
    ):
        bounds = min(recorded) * (1 - TOLERANCE), max(recorded) * (1 + TOLERANCE)
        assert bounds[0] <= value <= bounds[1], (usage, recorded)


def limited(name: str, script: str, **limits: str) -> Document:
    container = {"resources": {"limits": limits}}
    return command_pod(name, PYTHON, "-I", "-c", script, container=container)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Metered]]:
    """A node with cgroups and one without, as far as the user that runs the tests can have them."""
    home = tmp_path_factory.mktemp("home")
    with ExitStack() as stack:
        users = (None, need_nobody()) if not os.geteuid() else (None,)
        yield [
            Metered(stack.enter_context(process_node(isolation="none", user=user)), home)
            for user in users
        ]


@pytest.fixture(scope="module", autouse=True)
def unlimited_because(nodes: list[Metered]) -> str:
    """Why limits do not hold; empty if they do, and the first node has containers at them."""
    node = nodes[0].node
    try:
        found = find_cgroups(cgroups_name(node.node, node.root_dir))
    except CgroupsUnavailableError as error:
        return str(error)
    if lacking := {"cpu", "memory"}.intersection(found.missing):
        return f"no cgroups for {sorted(lacking)}"
    # Before the first test, so that they are measured meanwhile.
    node.cluster.create(
        limited("throttled", "while True: pass", cpu="100m", memory="1Gi"),
        limited("full", HOLDS, cpu="1", memory="68Mi"),
        limited("idle", IDLE, cpu="100m", memory="1Gi"),
    )
    return ""


@pytest.mark.skipif(KUBECTL is None, reason=HOW_TO_GET_IT)
def test_top_agrees_with_the_kernel(nodes: list[Metered]) -> None:
    since = time.time()
    with recording(*(it for node in nodes for it in (node.process, node.machine))):
        for node in nodes:
            node.check(since)


def test_default_rules_see_containers_at_their_limits(
    nodes: list[Metered], unlimited_because: str
) -> None:
    if unlimited_because:
        skip(unlimited_because)
    node = nodes[0].node

    def alerts() -> list[tuple[str, str, str]]:
        found = node.ask("/v1/alerts")["alerts"]
        pods = (it for it in found if it["subject"]["scope"] == "pod")
        return sorted((it["rule"], it["subject"]["name"], it["state"]) for it in pods)

    expected = [
        ("CPUThrottlingHigh", "throttled", "pending"),
        ("ContainerMemoryNearLimit", "full", "pending"),
    ]
    until(lambda: alerts() == expected, lambda: (alerts(), node.log()))
