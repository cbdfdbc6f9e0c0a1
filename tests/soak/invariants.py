"""What has to hold once all is calm: each look says what does not yet."""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from podstatus.agent.compose.runtime import cgroups_name
from podstatus.runtime.process.cgroups.model.mounts import parse_mounts
from tests.soak.churn import Churn
from tests.soak.history import is_mirror, uid_of
from tests.soak.judge import ENDED, Known, judge, judge_last_words, statuses
from tests.soak.ledger import Ledger
from tests.soak.stage import Stage
from tests.soak.truth import Key, Truth
from tests.soak.watching import Watcher
from tests.support.processes.agent_process import Document
from tests.support.processes.mortal_node import MortalNode

MOST_MEMORY = 256 * 2**20
MOST_OPEN_FILES = 400


class Invariants:
    """Looks at everything; a pod that was right once in a calm is right."""

    def __init__(
        self, stage: Stage, churn: Churn, ledger: Ledger, truth: Truth, watcher: Watcher
    ) -> None:
        self._stage, self._churn, self._ledger = stage, churn, ledger
        self._truth, self._watcher = truth, watcher
        self._right: set[str] = set()
        self._full_disk: set[str] = set()
        self._looked_at: set[str] = set()
        self.ends_checked = 0
        self.most_memory = 0
        self.most_open_files = 0

    def begin(self) -> None:
        """It is calm from now on."""
        self._right.clear()
        self._churn.resolve()

    def look(self) -> list[str]:
        """What is not as it should be, or not yet."""
        alive = self._truth.alive()
        pods = self._stage.server.pods()
        if pods is None:
            return ["the API server does not answer"]
        ordinary = [pod for pod in pods if not is_mirror(pod)]
        self._ledger.settle(ordinary)
        return [
            *self._ledger.judge(ordinary),
            *self._judge_statics(pods),
            *self._judge_pods(pods, alive),
            *self._judge_left(pods, alive),
            *self._judge_agent(),
        ]

    def judge_gone(self) -> list[str]:
        """What is wrong with the last that was shown of pods that were deleted with a grace."""
        complaints = []
        for uid, pod in self._watcher.gone().items():
            if uid in self._looked_at or not self._ledger.graceful.get(uid):
                continue
            self._looked_at.add(uid)
            known = self._known(uid, pod, {})
            self.ends_checked += sum(len(told.attempts) for told in known.told.values())
            name = pod["metadata"]["name"]
            complaints += [f"{name} ({uid}), deleted: {it}" for it in judge_last_words(pod, known)]
        return complaints

    def disk_is_full(self, uids: Iterable[str]) -> None:
        """These were there when it happened."""
        self._full_disk.update(uids)

    def _judge_pods(self, pods: list[Document], alive: dict[Key, list[int]]) -> Iterator[str]:
        for pod in pods:
            uid = uid_of(pod)
            if uid in self._right or "deletionTimestamp" in pod["metadata"]:
                continue
            known = self._known(uid, pod, alive)
            complaints = judge(pod, known)
            if not statuses(pod):
                complaints.append("nothing is shown of its containers")
            yield from (f"{pod['metadata']['name']} ({uid}): {it}" for it in complaints)
            if not complaints:
                self._right.add(uid)
                self.ends_checked += sum(
                    attempt.code is not None
                    for told in known.told.values()
                    for attempt in told.attempts
                )

    def _known(self, uid: str, pod: Document, alive: dict[Key, list[int]]) -> Known:
        spec = pod["spec"]
        names = [c["name"] for c in (*(spec.get("initContainers") or ()), *spec["containers"])]
        entry = self._ledger.entries.get(uid)
        return Known(
            now=time.time(),
            told={name: self._truth.told(uid, name) for name in names},
            alive=frozenset(name for name in names if (uid, name) in alive),
            disk_was_full=uid in self._full_disk or (entry is not None and entry.disk_was_full),
        )

    def _judge_statics(self, pods: list[Document]) -> Iterator[str]:
        wanted = {
            f"{name}-{self._stage.node.node}": it for name, it in self._churn.statics().items()
        }
        shown = {
            pod["metadata"]["name"]: pod["metadata"]["annotations"].get("soak/edition")
            for pod in pods
            if is_mirror(pod)
        }
        if shown != wanted:
            yield f"manifests say {wanted}, mirror pods {shown}"

    def _judge_left(self, pods: list[Document], alive: dict[Key, list[int]]) -> Iterator[str]:
        there = {uid_of(pod) for pod in pods}
        over = {uid_of(pod) for pod in pods if pod["status"].get("phase") in ENDED}
        for (uid, container), pids in alive.items():
            if uid not in there:
                yield f"process {pids} of {container} of {uid} runs, and that pod is gone"
            elif uid in over:
                yield f"process {pids} of {container} of {uid} runs, and that pod has ended"
        for folder in self._stage.pod_folders():
            if folder.name not in there:
                yield f"{folder} is there, and its pod is gone"
        for pid, uid in _shims(self._stage.node):
            if uid not in there:
                yield f"shim {pid} of {uid} runs, and that pod is gone"
        for name in _cgroups(cgroups_name(self._stage.node.node, self._stage.node.root_dir)):
            if name.removeprefix("pod") not in there:
                yield f"cgroup {name} is there, and its pod is gone"

    def _judge_agent(self) -> Iterator[str]:
        node = self._stage.node
        if not node.is_running or node.process is None:
            yield f"the agent has ended; see {node.folder / 'agent.log'}"
            return
        process = psutil.Process(node.process.pid)
        memory, open_files = process.memory_info().rss, process.num_fds()
        self.most_memory = max(memory, self.most_memory)
        self.most_open_files = max(open_files, self.most_open_files)
        if memory > MOST_MEMORY:
            yield f"the agent uses {memory / 2**20:.0f} MiB, {MOST_MEMORY / 2**20:.0f} is the most"
        if open_files > MOST_OPEN_FILES:
            yield f"the agent has {open_files} files open, {MOST_OPEN_FILES} is the most"


def _shims(node: MortalNode) -> Iterator[tuple[int, str]]:
    for shim in node.shims():
        with suppress(psutil.NoSuchProcess, IndexError):
            yield shim.pid, Path(shim.cmdline()[-2]).name


def _cgroups(name: str) -> set[str]:
    """The cgroups of pods, of an agent whose cgroup has this name."""
    mounts = parse_mounts(Path("/proc/self/mountinfo").read_text())
    tops = {mount.mount_point for mount in (*mounts.v1.values(), mounts.v2) if mount is not None}
    found = set()
    for top in tops:
        for path, folders, _ in os.walk(top):
            if Path(path).name == name:
                found.update(folders)
                folders.clear()
    return found
