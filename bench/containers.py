"""The cost per container in pods of 10, 1,000 and 10,000 containers, which must not grow.

Every processing step of a pod is measured separately, in CPU time: manifest, validation, decisions,
statuses, patch, summary and transitions. Figures are microseconds per container, the best of some
rounds; the ratio compares the largest pod with the smallest. A node accepts pods of 1,000
containers (docs/decisions/0041-size-limits-of-pods.md); the larger size shows the growth.
"""

import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from podstatus import Pod, PodManager, PodStatus, StatusManager, Time, decode, to_document
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    PodFacts,
    SandboxFacts,
    SandboxState,
)
from podstatus.kube.patch import apply_patch
from podstatus.kube.patch.schema import POD
from podstatus.kube.validation.pod_spec import validate_new_pod
from podstatus.observe.summary.pod import summarize_pod
from podstatus.observe.transitions.compare_statuses import status_transitions
from podstatus.pods.generate_api_status import generate_api_pod_status
from podstatus.sources.manifest.decode import read_manifest
from podstatus.sources.manifest.static_pods import ManifestOrigin
from podstatus.status.decide.merge import merge_pod_status, prepare_status_patch
from podstatus.status.decide.terminate import terminate_status
from podstatus.workers.actions.compute import compute_pod_actions
from podstatus.workers.actions.crash_loop_backoff import CrashLoopBackoff
from podstatus.workers.actions.termination_order import termination_order
from podstatus.workers.admission.pod_limits import find_limit_violation

RESULTS = Path(__file__).parent / "results" / "containers.json"
SIZES = (10, 1_000, 10_000)
ROUNDS = 3
MAX_RATIO = 3.0
"""Maximum ratio of the cost per container in the largest pod to that in the smallest; more than 1
because of CPU caches."""

_SINCE = Time.parse("2024-01-01T00:00:00Z")
_PROBE = {"exec": {"command": ["true"]}, "periodSeconds": 10, "timeoutSeconds": 1}
_GATES = FeatureGates()

Work = Callable[[], object]


class NothingRuns:
    """A node without running containers."""

    def could_have_running_containers(self, pod: Pod) -> bool:
        """Return False: no containers are running."""
        return False


class Rig:
    """A pod with this many containers, half of them sidecars, before and after their start."""

    def __init__(self, containers: int) -> None:
        names = [f"c{number}" for number in range(containers)]
        half = containers // 2
        self.text = msgspec.json.encode(_document(names[:half], names[half:]))
        self.pod = decode(self.text, Pod)
        self.running = PodFacts(
            ips=("10.0.0.1",),
            sandboxes=(SandboxFacts(state=SandboxState.READY, ip="10.0.0.1"),),
            containers=tuple(_running(name) for name in reversed(names)),
        )
        self.before = self._status(PodFacts(), PodStatus())
        self.after = self._status(self.running, self.before)
        self.patch = prepare_status_patch(self.pod.uid, self.before, self.after).body
        self.shown = structs.replace(self.pod, status=self.after)

    def steps(self) -> dict[str, Work]:
        """Return the processing steps of a pod by name."""
        pod, now, before, after = self.pod, _SINCE, self.before, self.after
        documents = (
            to_document(structs.replace(pod, status=before)),
            msgspec.json.decode(self.patch),
        )
        origin = ManifestOrigin(source="file", location="pod.json", node_name="n")
        return {
            "decode": lambda: decode(self.text, Pod),
            "manifest": lambda: read_manifest(self.text, origin, now),
            "validate": lambda: validate_new_pod(pod),
            "admit": lambda: find_limit_violation(pod),
            "actions of a new pod": lambda: self._actions(PodFacts()),
            "actions of a running pod": lambda: self._actions(self.running),
            "status": lambda: self._status(self.running, before),
            "set status": self._set_statuses,
            "merge": lambda: self._merged(before, after),
            "patch": lambda: prepare_status_patch(pod.uid, before, after),
            "apply patch": lambda: apply_patch(*documents, POD),
            "terminate": lambda: terminate_status(pod, after),
            "stop order": lambda: termination_order(pod, self.running),
            "summary": lambda: summarize_pod(self.shown),
            "transitions": lambda: status_transitions(before, after),
        }

    def _status(self, facts: PodFacts, old: PodStatus) -> PodStatus:
        return generate_api_pod_status(self.pod, facts, now=_SINCE, old_status=old)

    def _actions(self, facts: PodFacts) -> object:
        return compute_pod_actions(
            self.pod, facts, monotonic=_SINCE, crash_loop_backoff=CrashLoopBackoff()
        )

    def _merged(self, old: PodStatus, new: PodStatus) -> object:
        return merge_pod_status(
            self.pod, old, new, could_have_running_containers=False, now=_SINCE, gates=_GATES
        )

    def _set_statuses(self) -> None:
        manager = StatusManager(None, PodManager(), NothingRuns())
        for status in (self.before, self.after, terminate_status(self.pod, self.after)):
            manager.set_pod_status(self.pod, status)


def _document(sidecars: list[str], regular: list[str]) -> dict[str, Any]:
    def container(name: str, **more: str) -> dict[str, Any]:
        return {"name": name, "image": "busybox:1.37", "readinessProbe": _PROBE, **more}

    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "spec": {
            "restartPolicy": "OnFailure",
            "terminationGracePeriodSeconds": 30,
            "initContainers": [container(name, restartPolicy="Always") for name in sidecars],
            "containers": [container(name) for name in regular],
        },
    }


def _running(name: str) -> ContainerFacts:
    return ContainerFacts(
        name=name,
        state=ContainerRunState.RUNNING,
        id=f"bench://{name}",
        created_at=_SINCE,
        started_at=_SINCE,
        image="busybox:1.37",
    )


def seconds(work: Work) -> float:
    """Return the CPU seconds of the work without garbage collection, the best of some rounds."""
    rounds = []
    gc.disable()
    try:
        for _ in range(ROUNDS):
            start = time.process_time()
            work()
            rounds.append(time.process_time() - start)
    finally:
        gc.enable()
    return min(rounds)


def repeated(work: Work, times: int) -> Work:
    """Repeat the work, so that a small pod takes as long as a large one."""

    def run() -> None:
        for _ in range(times):
            work()

    return run


def measure() -> dict[str, dict[int, float]]:
    """Return the microseconds per container by step and size."""
    figures: dict[str, dict[int, float]] = {}
    for size in SIZES:
        times = max(SIZES) // size
        for name, work in Rig(size).steps().items():
            spent = seconds(repeated(work, times))
            figures.setdefault(name, {})[size] = spent / times / size * 1e6
        print(f"{size} containers measured", file=sys.stderr)
    return figures


def ratio(costs: dict[int, float]) -> float:
    """Return the cost per container in the largest pod relative to the smallest."""
    return costs[SIZES[-1]] / max(costs[SIZES[0]], 0.05)


def main() -> None:
    """Measure, print a table and write the figures."""
    figures = measure()
    print(
        f"{'µs per container':<26}" + "".join(f"{size:>10,}" for size in SIZES) + f"{'ratio':>10}"
    )
    for name, costs in figures.items():
        cells = "".join(f"{costs[size]:>10.2f}" for size in SIZES)
        print(f"{name:<26}{cells}{ratio(costs):>10.2f}")
    print(f"{'at most':<56}{MAX_RATIO:>10.2f}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
