"""Generate calls for the eviction oracle: `generate_cases.py > cases.jsonl`.

The same seed gives the same calls. Values are few and lie on edges, so that ties, exact
thresholds and missing figures are frequent. What upstream decides at random is avoided, except
for the choice among several thresholds, of which the oracle records all outcomes.
"""

import argparse
import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

Document = dict[str, Any]

KI, MI, GI = 1 << 10, 1 << 20, 1 << 30
SECOND = 1_000_000_000
MINUTE = 60 * SECOND
SIGNALS = (
    "memory.available",
    "allocatableMemory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "pid.available",
)
BAD_QUANTITIES = ("", "x", "1 Mi", "5%5", "-", "1.5.5", "0x10", "1kk", "%", "--1%", "1e400%", " 1%")
BYTES = (0, 1, 500, 1000, 1023, 1024, 4096, 100 * MI - 1, 100 * MI, 100 * MI + 1, GI, 3 * GI)
REQUESTS = (None, None, "0", "1", "1Ki", "100Mi", "104857600", "0.1Gi", "1Gi", "1G", "1500m")
START = datetime(2024, 1, 1, tzinfo=UTC)


class Generator:
    """Calls of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def calls(self) -> Iterator[Document]:
        """All families, in the order of the oracle's table."""
        families: list[tuple[str, int, Callable[[], Document]]] = [
            ("ParseThresholdConfig", 420, self.parse_threshold_config),
            ("UpdateContainerFsThresholds", 120, self.update_containerfs_thresholds),
            ("makeSignalObservations", 120, lambda: {"summary": self.summary([])}),
            ("thresholdsMet", 420, self.thresholds_met),
            ("rankPods", 480, self.rank_pods),
            ("evictionMessage", 260, self.eviction_message),
            ("localStorageEviction", 320, self.local_storage_eviction),
            ("Admit", 160, self.admit),
            ("synchronize", 420, self.synchronize),
        ]
        for name, count, arguments in families:
            for _ in range(count):
                yield {"fn": name, "args": arguments()}

    def maybe(self, share: float) -> bool:
        return self.random.random() < share

    def choice(self, *options: Any) -> Any:
        return self.random.choice(options)

    # Settings

    def percentage(self) -> str:
        whole = self.random.choice((0, 1, 3, 5, 7, 10, 15, 29, 33, 50, 57, 90, 99, 100))
        fraction = self.choice("", "", "", ".0", ".5", ".1", ".", ".333333333")
        return f"{whole}%" if whole == 100 else f"{whole}{fraction}%"

    def amount(self) -> str:
        return str(
            self.choice(
                "100Mi", "1Gi", "1", "1500m", "100M", "1e3", "0.5Gi", "5k", "1Ki", "104857600"
            )
        )

    def odd_value(self) -> str:
        if self.maybe(0.5):
            return str(self.random.choice(BAD_QUANTITIES))
        return str(
            self.choice(
                "0",
                "-1",
                "-0",
                "0.0",
                "-5%",
                "-0%",
                "101%",
                "10%%",
                "+5%",
                "100.0%",
                "100.5%",
                "1e1%",
                "0.0%",
                "1e-12%",
                "1n",
            )
        )

    def value(self, odd: float = 0.0) -> str:
        if self.maybe(odd):
            return self.odd_value()
        return self.percentage() if self.maybe(0.5) else self.amount()

    def signals(self, most: int, odd: float = 0.0) -> list[str]:
        chosen = self.random.sample(SIGNALS, self.random.randint(0, most))
        if self.maybe(odd):
            chosen.append(self.choice("cpu.available", "", "nodefs", "Memory.available"))
        return chosen

    def settings(self, odd: float = 0.0, most: int = 4) -> Document:
        hard = {signal: self.value(odd) for signal in self.signals(most, odd / 3)}
        soft = {signal: self.value(odd) for signal in self.signals(most // 2, odd / 3)}
        periods = {
            signal: self.choice("1m", "30s", "1m30s", "0s", "0", "1.5h", "10s")
            for signal in soft
            if not self.maybe(odd / 4)
        }
        if self.maybe(odd):
            periods[self.choice(*SIGNALS)] = self.choice(
                "-1s", "5", "", "1d", "+3s", "1m", ".5s", "1ms"
            )
        reclaim = {
            signal: self.choice("500Mi", "1Gi", "0", "1", "10%", "0.5%", "1500m", "150%")
            for signal in self.signals(3, odd / 3)
        }
        if self.maybe(odd):
            reclaim[self.choice(*SIGNALS)] = self.choice("0%", "-1", "-5%", "x", "0.0%", "1%%")
        enforced = self.choice([], ["pods"], ["pods"], ["pods"], ["system-reserved", "pods"])
        document = {
            "enforceNodeAllocatable": enforced,
            "evictionHard": hard,
            "evictionSoft": soft,
            "evictionSoftGracePeriod": periods,
            "evictionMinimumReclaim": reclaim,
        }
        return {name: value for name, value in document.items() if value}

    def layout(self) -> Document:
        dedicated = self.maybe(0.4)
        return {
            "dedicatedImageFs": dedicated,
            "splitContainerImageFs": self.maybe(0.5) if dedicated else self.maybe(0.1),
        }

    def parse_threshold_config(self) -> Document:
        return self.settings(odd=self.choice(0.0, 0.1, 0.3))

    def without_zero_grace_of_containerfs(self, settings: Document) -> Document:
        """With two hard thresholds of one containerfs signal, upstream replaces only one."""
        for signal, period in settings.get("evictionSoftGracePeriod", {}).items():
            if signal.startswith("containerfs") and period in ("0", "0s"):
                settings["evictionSoftGracePeriod"][signal] = "1m"
        return settings

    def update_containerfs_thresholds(self) -> Document:
        settings = self.without_zero_grace_of_containerfs(self.settings(most=8))
        return {"settings": settings, "layout": self.layout()}

    # Usage

    def time(self, seconds: int = 0) -> str:
        return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def drop(self, document: Document, share: float = 0.08) -> Document:
        return {key: value for key, value in document.items() if not self.maybe(share)}

    def filesystem(self, missing: float = 0.08) -> Document:
        capacity = self.choice(
            0, 100, 1000, 10 * GI, 10 * GI + 1, 333_333_333_333, self.random.randrange(1 << 45)
        )
        inodes = self.choice(0, 100, 6_553_600, 1000, self.random.randrange(1 << 32))
        return self.drop(
            {
                "availableBytes": self.part(capacity),
                "capacityBytes": capacity,
                "inodesFree": self.part(inodes),
                "inodes": inodes,
            },
            missing,
        )

    def part(self, whole: int) -> int:
        """An amount at, just beside or far from a common percentage of the whole."""
        share = self.choice(0, 1, 3, 5, 7, 10, 15, 29, 33, 50, 57, 90, 100)
        edge = whole * share // 100 + self.choice(0, 0, -1, 1)
        absolute = self.choice(100 * MI, 100 * MI - 1, GI, GI - 1, 1024, 1, edge, edge, edge)
        return int(max(0, min(whole, absolute)))

    def memory(self, missing: float = 0.08) -> Document:
        capacity = self.choice(GI, 8 * GI, 8 * GI + 7, 1000, 200 * MI)
        available = self.part(capacity)
        return self.drop(
            {"availableBytes": available, "workingSetBytes": capacity - available}, missing
        )

    def node(self, at: int | None = None, missing: float = 0.08) -> Document:
        most = self.choice(100, 1000, 32768, 4_194_304)
        running = most - self.part(most) + self.choice(0, 0, 0, most)
        timed: Document = {} if at is None else {"time": self.time(at)}
        pods_memory = {
            "name": self.choice("pods", "pods", "pods", "kubelet"),
            "startTime": None,
            "memory": {**self.memory(missing), **timed},
        }
        return self.drop(
            {
                "nodeName": "n",
                "startTime": None,
                "memory": {**self.memory(missing), **timed},
                "systemContainers": [
                    self.drop(pods_memory, missing) | {"name": pods_memory["name"]}
                ],
                "fs": {**self.filesystem(missing), **timed},
                "runtime": self.drop(
                    {
                        "imageFs": {**self.filesystem(missing), **timed},
                        "containerFs": {**self.filesystem(missing), **timed},
                    },
                    missing,
                ),
                "rlimit": {**self.drop({"maxpid": most, "curproc": running}, missing), **timed},
            },
            missing,
        )

    def summary(
        self, pods: list[Document], at: int | None = None, missing: float = 0.08
    ) -> Document:
        if at is None and self.maybe(0.3):
            at = self.random.randrange(100)
        stats = [self.pod_stats(pod) for pod in pods if not self.maybe(0.1)]
        return {"node": self.node(at, missing), "pods": stats}

    def usage(self) -> Document:
        inodes = self.choice(0, 0, 1, 5, 100, 5000, 5000)
        return self.drop({"usedBytes": self.random.choice(BYTES), "inodesUsed": inodes}, 0.06)

    def pod_stats(self, pod: Document) -> Document:
        spec = pod["spec"]
        named = [
            container["name"]
            for container in (*spec["containers"], *spec.get("initContainers", ()))
        ]
        containers = [
            self.drop(
                {
                    "memory": self.drop({"workingSetBytes": self.random.choice(BYTES)}, 0.06),
                    "rootfs": self.usage(),
                    "logs": self.usage(),
                },
                0.06,
            )
            | {"name": name, "startTime": None}
            for name in (*named, *(["ephemeral"] if self.maybe(0.05) else []))
            if not self.maybe(0.06)
        ]
        self.random.shuffle(containers)
        volumes = [
            {"name": volume["name"], "inodesUsed": self.choice(0, 3, 100)}
            | {"usedBytes": self.random.choice(BYTES)}
            for volume in spec.get("volumes", ())
            if not self.maybe(0.1)
        ]
        document = {
            "memory": self.drop({"workingSetBytes": self.random.choice(BYTES)}, 0.06),
            "process_stats": self.drop(
                {"process_count": self.choice(0, 1, 1, 5, 7, 7, 1000)}, 0.06
            ),
            "ephemeral-storage": self.drop({"usedBytes": self.random.choice(BYTES)}, 0.06),
        }
        reference = {
            "name": pod["metadata"]["name"],
            "namespace": "default",
            "uid": pod["metadata"]["uid"],
        }
        return self.drop(document, 0.06) | {
            "podRef": reference,
            "startTime": None,
            "containers": containers,
            "volume": volumes,
        }

    # Pods

    def resources(self, *, pod_level: bool = False) -> Document:
        names = (
            ("memory",)
            if pod_level
            else ("memory", "ephemeral-storage", "ephemeral-storage", "inodes")
        )
        document: Document = {}
        for side in ("requests", "limits"):
            chosen = {name: self.random.choice(REQUESTS) for name in names if self.maybe(0.6)}
            document[side] = {name: value for name, value in chosen.items() if value is not None}
        return {side: amounts for side, amounts in document.items() if amounts or self.maybe(0.1)}

    def container(self, name: str) -> Document:
        return {"name": name, "image": "i", "resources": self.resources()}

    def volume(self, name: str) -> Document:
        empty_dir: Document = {}
        if self.maybe(0.6):
            empty_dir["sizeLimit"] = self.choice(
                "0", "1", "1Ki", "100Mi", "1Gi", "1500m", "104857600", "-1"
            )
        if self.maybe(0.3):
            empty_dir["medium"] = self.choice("Memory", "HugePages")
        source = self.choice(
            {"emptyDir": empty_dir},
            {"emptyDir": empty_dir},
            {"emptyDir": empty_dir},
            {"hostPath": {"path": "/x"}},
            {"configMap": {"name": "c"}},
            {"secret": {"secretName": "s"}},
            {"gitRepo": {"repository": "r"}},
            {"projected": {"sources": None}},
            {"downwardAPI": {}},
        )
        return {"name": name, **source}

    def make_critical(self, spec: Document, metadata: Document) -> None:
        """By priority or annotation; one of these annotations has no effect."""
        if self.maybe(0.5):
            spec["priority"] = self.choice(2_000_000_000, 2_000_001_000)
            return
        metadata["annotations"] = self.choice(
            {"kubernetes.io/config.source": "file"},
            {"kubernetes.io/config.source": "api"},
            {"kubernetes.io/config.mirror": "abc"},
        )

    def pod(self, name: str, critical: float = 0.15) -> Document:
        metadata: Document = {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "creationTimestamp": None,
        }
        spec: Document = {
            "containers": [self.container(f"c{i}") for i in range(self.choice(1, 1, 2, 3))]
        }
        if self.maybe(0.25):
            spec["initContainers"] = [self.container(f"i{i}") for i in range(self.choice(1, 2))]
            if self.maybe(0.5):
                spec["initContainers"][0]["restartPolicy"] = "Always"
        if self.maybe(0.4):
            spec["volumes"] = [self.volume(f"v{i}") for i in range(self.choice(1, 2, 3))]
        if self.maybe(0.15):
            spec["resources"] = self.resources(pod_level=True)
        if self.maybe(0.15):
            spec["overhead"] = {"memory": "10Mi", "ephemeral-storage": "1Mi"}
        if self.maybe(0.5):
            spec["priority"] = self.choice(-1, 0, 0, 1, 1000, 1_999_999_999)
        if self.maybe(critical):
            self.make_critical(spec, metadata)
        if self.maybe(0.5):
            spec["terminationGracePeriodSeconds"] = self.choice(0, 1, 30, 600)
        if self.maybe(0.3):
            metadata["generation"] = self.choice(1, 7)
        return {"metadata": metadata, "spec": spec, "status": {}}

    def pods(self, most: int = 8, critical: float = 0.15) -> list[Document]:
        """At most 12: Go's sort keeps the order of ties up to there."""
        return [self.pod(f"p{i}", critical) for i in range(self.random.randint(1, most))]

    # Calls

    def thresholds_met(self) -> Document:
        return {
            "settings": self.settings(most=6),
            "summary": self.summary([], missing=0.03),
            "enforceMinReclaim": self.maybe(0.5),
        }

    def rank_pods(self) -> Document:
        pods = self.pods(self.choice(4, 8, 12), critical=0.05)
        stats = [self.pod_stats(pod) for pod in pods if not self.maybe(0.1)]
        if self.maybe(0.08):  # more pods than Go sorts in place, so without ties
            pods = [self.pod(f"p{i}") for i in range(40)]
            stats = [self.pod_stats(pod) for pod in pods]
            for i, (pod, measured) in enumerate(
                zip(pods, self.random.sample(stats, 40), strict=True)
            ):
                pod["spec"]["priority"] = i
                measured["memory"] = {"workingSetBytes": i}
        return {
            "signal": self.random.choice(SIGNALS),
            "pods": pods,
            "podStats": stats,
            "layout": self.layout(),
        }

    def eviction_message(self) -> Document:
        pod = self.pod("p")
        capacity = self.choice(100, 6_553_600, 10 * GI, 8 * GI + 7)
        threshold = self.value()
        return {
            "signal": self.choice(*SIGNALS, "memory.available", "nodefs.available"),
            "pod": pod,
            "podStats": [] if self.maybe(0.05) else [self.pod_stats(pod)],
            "threshold": "5%" if threshold in ("0%", "100%") else threshold,
            "available": self.part(capacity),
            "capacity": capacity,
        }

    def local_storage_eviction(self) -> Document:
        pods = self.pods(4)
        stats = [self.pod_stats(pod) for pod in pods if not self.maybe(0.08)]
        return {"pods": pods, "podStats": stats, "layout": self.layout()}

    def admit(self) -> Document:
        pod = self.pod("p", critical=0.2)
        if self.maybe(0.6):
            for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
                container["resources"] = {}
            pod["spec"].pop("resources", None)
        if self.maybe(0.5):
            pod["spec"]["tolerations"] = [self.toleration() for _ in range(self.choice(1, 2))]
        if self.maybe(0.1):
            pod["status"]["qosClass"] = self.choice("BestEffort", "Burstable", "Guaranteed")
        conditions = ["MemoryPressure", "DiskPressure", "PIDPressure"]
        chosen = self.random.sample(conditions, self.random.randint(0, 3))
        if self.maybe(0.5):
            chosen = ["MemoryPressure"]
        return {"pod": pod, "nodeConditions": chosen}

    def toleration(self) -> Document:
        document = {
            "key": self.choice(
                "node.kubernetes.io/memory-pressure", "node.kubernetes.io/disk-pressure", ""
            ),
            "operator": self.choice("Exists", "Equal", "", "Gt"),
            "value": self.choice("", "", "x"),
            "effect": self.choice("", "NoSchedule", "NoExecute"),
        }
        return {name: value for name, value in document.items() if value}

    def synchronize(self) -> Document:
        pods = self.pods(6)
        settings = self.without_zero_grace_of_containerfs(
            self.settings(most=self.choice(1, 2, 4, 6))
        )
        if self.maybe(0.4):  # only soft ones, or pods would always be evicted for a hard one
            settings.pop("evictionHard", None)
        period = self.choice(5 * MINUTE, 30 * SECOND, MINUTE, 0)
        return {
            "settings": settings,
            "pressureTransitionPeriod": period,
            "maxPodGracePeriodSeconds": self.choice(0, 10, 60, -1),
            "localStorageCapacityIsolation": self.maybe(0.3),
            "layout": self.layout(),
            "pods": pods,
            "steps": list(self.steps(pods)),
        }

    def steps(self, pods: list[Document]) -> Iterator[Document]:
        """A node whose usage often stays the same, and is often measured less than it is asked."""
        measured = 0
        summary = self.summary(pods, measured, missing=0.02)
        for _ in range(self.random.randint(2, 7)):
            advance = self.choice(10, 10, 10, 29, 30, 31, 60, 90, 300) * SECOND
            kind = self.random.random()
            if kind < 0.25:
                measured += 10
                summary = self.summary(pods, measured, missing=0.02)
            elif kind < 0.7:
                measured += self.choice(10, 10, -5)
                summary = self.measured_again(summary, measured)
            step = {
                "advance": advance,
                "summary": summary,
                "active": [index for index in range(len(pods)) if not self.maybe(0.1)],
            }
            if self.maybe(0.3):
                step["after"] = self.summary(pods, measured + 1, missing=0.02)
            yield step

    def measured_again(self, summary: Document, measured: int) -> Document:
        """The same usage at another time; sometimes without one."""

        def retimed(value: Any) -> Any:
            if isinstance(value, dict):
                return {
                    key: self.time(measured) if key == "time" else retimed(it)
                    for key, it in value.items()
                }
            return [retimed(it) for it in value] if isinstance(value, list) else value

        again: Document = retimed(summary)
        if self.maybe(0.1):
            for part in ("memory", "fs", "rlimit"):
                again["node"].get(part, {}).pop("time", None)
        return again


def main() -> None:
    """Print the calls, one JSON document per line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for call in Generator(arguments.seed).calls():
        print(json.dumps(call, separators=(",", ":")))


if __name__ == "__main__":
    main()
