"""The CPU cost of the core, compared with one msgspec decode of the same pod.

Everything is measured in one process, in interleaved rounds, and the medians are compared, so that
figures from different machines and times are comparable. Every status is freshly decoded: it may be
equal to an earlier one, but is never the same object.
"""

import asyncio
import gc
import json
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from uuid import UUID

import msgspec
from msgspec import structs

from podstatus import (
    Pod,
    PodManager,
    PodStatus,
    StatusManager,
    SyncPolicy,
    Time,
    decode,
    to_document,
)
from podstatus.kube.objects.pod import ApiUID
from podstatus.kube.objects.pod_status import PodIP
from podstatus.status.decide.merge import prepare_status_patch
from podstatus.testing.builders import make_pod, make_status, running

RESULTS = Path(__file__).parent / "results" / "core.json"
PODS = 500
ROUNDS = 7
NODES = (100, 10_000)
"""Numbers of pods for which planning is compared."""
PASSES = 5
"""Passes over all pods in one round; their median is used."""

_SINCE = Time.parse("2024-01-01T00:00:00Z")

LIMITS = {
    "changed_ratio": 3.6,
    "noop_ratio": 2.0,
    "patch_ratio": 20.0,
    "sync_ratio": 40.0,
    "plan_ratio": 2.0,
}


class ServerCopies:
    """An API server without I/O and with prepared responses."""

    def __init__(self) -> None:
        self.before: dict[str, Pod] = {}
        self.after: dict[str, Pod] = {}

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """Return the pod before the patch."""
        return self.before[name]

    async def patch_pod_status(self, namespace: str, name: str, patch: bytes) -> Pod:
        """Return the pod after the patch."""
        return self.after[name]

    async def delete_pod(
        self, namespace: str, name: str, *, uid: ApiUID, grace_period_seconds: int
    ) -> None:
        """Do nothing: no pod is deleted in this benchmark."""


class NothingRuns:
    """A node without running containers."""

    def could_have_running_containers(self, pod: Pod) -> bool:
        """Return False: no containers are running."""
        return False


class Rig:
    """Pods with one container and five conditions, in both states of a ready flip."""

    def __init__(self, pods: int) -> None:
        self.texts = {
            ready: [pod_text(number, ready=ready) for number in range(pods)]
            for ready in (False, True)
        }
        self.pods = self.decoded(ready=False)
        self.server = ServerCopies()
        directory = PodManager()
        directory.set_pods(self.pods)
        # The upstream policy reads and patches every pod, whatever the pod manager has.
        policy = SyncPolicy.upstream()
        self.manager = StatusManager(self.server, directory, NothingRuns(), policy=policy)
        self.ready = False
        self._runner = asyncio.Runner()
        self.report()
        self.sync()

    def close(self) -> None:
        """Close the event loop of the rig."""
        self._runner.close()

    def decoded(self, *, ready: bool) -> list[Pod]:
        """Return all pods, freshly decoded."""
        return [decode(text, Pod) for text in self.texts[ready]]

    def statuses(self) -> list[PodStatus]:
        """Return the current statuses, freshly decoded."""
        return [pod.status for pod in self.decoded(ready=self.ready)]

    def report_change(self) -> float:
        """Set the opposite status of every pod; return the seconds."""
        self.ready = not self.ready
        return self.report()

    def report(self) -> float:
        """Set the current status of every pod; return the seconds."""
        statuses = self.statuses()
        return timed(lambda: self._set(statuses))

    def _set(self, statuses: Iterable[PodStatus]) -> None:
        set_pod_status = self.manager.set_pod_status
        for pod, status in zip(self.pods, statuses, strict=True):
            set_pod_status(pod, status)

    def sync_change(self) -> float:
        """Sync every pod after a change; return the seconds."""
        self.report_change()
        return self.sync()

    def sync(self) -> float:
        """Send the changes to a server with the old state; return the seconds."""
        self.server.before = {pod.name: pod for pod in self.decoded(ready=not self.ready)}
        self.server.after = {pod.name: pod for pod in self.decoded(ready=self.ready)}
        return self._batch(full=False)

    def plan(self) -> float:
        """Run a full sync without any difference; return the seconds."""
        return self._batch(full=True)

    def _batch(self, *, full: bool) -> float:
        return timed(lambda: self._runner.run(self.manager.sync_batch(full=full)))

    def patch(self) -> float:
        """Create the patch of a ready flip for every pod; return the seconds."""
        pairs = list(zip(self.decoded(ready=not self.ready), self.statuses(), strict=True))

        def create() -> None:
            for pod, status in pairs:
                prepare_status_patch(pod.uid, pod.status, status)

        return timed(create)

    def decode(self) -> float:
        """Decode every pod; return the seconds."""
        texts = self.texts[self.ready]

        def read() -> None:
            for text in texts:
                decode(text, Pod)

        return timed(read)


def timed(work: Callable[[], object]) -> float:
    """Return the CPU seconds of the work; existing objects are exempt from garbage collection."""
    gc.freeze()
    start = time.process_time()
    work()
    spent = time.process_time() - start
    gc.unfreeze()
    return spent


def pod_text(number: int, *, ready: bool) -> bytes:
    """Return a running pod as JSON, ready or not."""
    ready_status = "True" if ready else "False"
    conditions = {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": ready_status,
        "ContainersReady": ready_status,
        "PodScheduled": "True",
    }
    status = make_status("Running", running("app", ready=ready), **conditions)
    address = f"10.0.{number // 250}.{number % 250 + 1}"
    status = structs.replace(
        status,
        conditions=tuple(
            structs.replace(condition, last_transition_time=_SINCE)
            for condition in status.conditions or ()
        ),
        host_ip="192.0.2.1",
        pod_ip=address,
        pod_ips=(PodIP(ip=address),),
        start_time=_SINCE,
        qos_class="BestEffort",
    )
    pod = make_pod(f"pod-{number}", uid=str(UUID(int=number + 1)), status=status)
    return msgspec.json.encode(to_document(pod))


def measure_rounds() -> dict[str, float]:
    """Return the microseconds per pod: medians of interleaved rounds."""
    rig = Rig(PODS)
    measures: dict[str, Callable[[], float]] = {
        "decode_us": rig.decode,
        "changed_us": rig.report_change,
        "noop_us": rig.report,
        "patch_us": rig.patch,
        "sync_us": rig.sync_change,
    }
    rounds: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(ROUNDS):
        for name, measure in measures.items():
            seconds = statistics.median(measure() for _ in range(PASSES))
            rounds[name].append(seconds / PODS * 1e6)
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
    rig.close()
    return {name: statistics.median(values) for name, values in rounds.items()}


def measure_plan() -> dict[str, float]:
    """Return the microseconds per pod of a full sync without differences, by node size."""
    rigs = {pods: Rig(pods) for pods in NODES}
    rounds: dict[int, list[float]] = {pods: [] for pods in rigs}
    for _ in range(ROUNDS):
        for pods, rig in rigs.items():
            passes = max(NODES) // pods
            rounds[pods].append(sum(rig.plan() for _ in range(passes)) / passes / pods * 1e6)
    for rig in rigs.values():
        rig.close()
    return {f"plan_us_per_pod_{pods}": statistics.median(v) for pods, v in rounds.items()}


def measure_memory() -> float:
    """Return the bytes that the manager keeps per pod, including the status."""
    texts = [pod_text(number, ready=True) for number in range(PODS)]
    # Pods without a status: shared parts would not be counted.
    pods = [structs.replace(decode(text, Pod), status=PodStatus()) for text in texts]
    manager = StatusManager(None, PodManager(), NothingRuns())
    gc.collect()
    tracemalloc.start()
    for pod, text in zip(pods, texts, strict=True):
        manager.set_pod_status(pod, decode(text, Pod).status)
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / PODS


def measure_import() -> float:
    """Return the CPU seconds of `import podstatus` in a new Python process."""
    code = (
        "import time; start = time.process_time(); import podstatus; "
        "print(time.process_time() - start)"
    )
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, check=True).stdout for _ in range(ROUNDS)]
    return statistics.median(map(float, runs))


def main() -> None:
    """Measure, print a table and write the figures."""
    figures = measure_rounds()
    for name in ("changed", "noop", "patch", "sync"):
        figures[f"{name}_ratio"] = figures[f"{name}_us"] / figures["decode_us"]
    figures |= measure_plan()
    small, large = (figures[f"plan_us_per_pod_{pods}"] for pods in NODES)
    figures["plan_ratio"] = large / small
    figures["bytes_per_pod"] = measure_memory()
    figures["import_s"] = measure_import()
    print(f"{'':<26}{'seen':>10}{'at most':>10}")
    for name, value in figures.items():
        limit = LIMITS.get(name)
        print(f"{name:<26}{value:>10.3f}" + ("" if limit is None else f"{limit:>10.1f}"))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({k: round(v, 4) for k, v in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
