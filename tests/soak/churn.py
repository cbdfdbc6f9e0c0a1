"""Pods come and go, all the time."""

import random
import time
from collections import deque
from pathlib import Path

import yaml

from tests.soak.kinds import Maker, any_kind, make_pod
from tests.soak.ledger import MARK, Entry, Ledger
from tests.soak.stage import ServerProcess
from tests.support.processes.agent_process import Document
from tests.support.processes.api_servers import MERGE

PODS = 50
_PATH = "/api/v1/namespaces/default/pods"
_STEP_SECONDS = 0.15
_STATIC = ("service", "crash-loop", "two")


class Churn:
    """Creates, marks and deletes pods; writes and changes manifests."""

    def __init__(
        self,
        server: ServerProcess,
        ledger: Ledger,
        make: Maker,
        manifests: Path,
        chance: random.Random,
    ) -> None:
        self._server, self._ledger, self._make = server, ledger, make
        self._manifests = manifests
        self._chance = chance
        self._number = 0
        self._again: deque[str] = deque()
        """Names to be used once more."""
        self._unsure: dict[str, Document] = {}
        """Created, without an answer."""
        self.disk_is_full = False
        self.complaints: list[str] = []

    def go_on(self, seconds: float) -> None:
        """Let pods come and go for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _STEP_SECONDS))
            if left > _STEP_SECONDS:
                self.step()

    def step(self) -> None:
        """Something small."""
        wanted = self._ledger.wanted()
        if len(wanted) < PODS:
            self.create(any_kind(self._chance))
            return
        dice = self._chance.random()
        if dice < 0.35:
            self.delete(self._chance.choice(wanted))
        elif dice < 0.6:
            self.mark(self._chance.choice(wanted))
        elif dice < 0.63:
            self.write_manifest(self._chance.randrange(len(_STATIC)))

    def fill(self) -> None:
        """Have as many pods as there should be."""
        for number in range(len(_STATIC)):
            self.write_manifest(number)
        while len(self._ledger.wanted()) < PODS:
            self.create(any_kind(self._chance))

    def create(self, kind: str) -> None:
        """A pod of this kind, perhaps with the name of one that was deleted."""
        name = f"{kind}-{self._number}"
        self._number += 1
        if self._again and self._chance.random() < 0.5:
            name = self._again.popleft()
        code, answer = self._server.ask("POST", _PATH, make_pod(kind, name, self._make))
        if code == 201:
            self._took(answer, acknowledged=True)
        elif code == 409:
            self._again.append(name)  # the one before is still there
        elif code == 0:
            self._unsure[name] = {}

    def resolve(self) -> None:
        """Learn what became of creations without an answer."""
        for name in list(self._unsure):
            code, found = self._server.ask("GET", f"{_PATH}/{name}")
            if code:
                del self._unsure[name]
            if code == 200 and found["metadata"]["uid"] not in self._ledger.entries:
                self._took(found, acknowledged=False)

    def delete(self, entry: Entry) -> None:
        """With its grace, a shorter one, or by force."""
        grace = self._chance.choice((None, None, None, 1, 0))
        options: Document = {"preconditions": {"uid": entry.uid}}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        code, _ = self._server.ask("DELETE", f"{_PATH}/{entry.name}", options)
        if code == 200:
            self._ledger.take_deleted(entry.uid, forced=grace == 0)
            if self._chance.random() < 0.3:
                self._again.append(entry.name)
        elif code == 0:
            entry.maybe_deleted = True
            entry.forced = entry.forced or grace == 0

    def mark(self, entry: Entry) -> None:
        """Count its label up."""
        entry.marks_tried += 1
        patch = {"metadata": {"uid": entry.uid, "labels": {MARK: str(entry.marks_tried)}}}
        path = f"{_PATH}/{entry.name}"
        code, answer = self._server.ask("PATCH", path, patch, content_type=MERGE)
        if code == 200:
            self.complaints += self._ledger.take_marked(entry.uid, answer)

    def write_manifest(self, number: int) -> None:
        """A static pod; it is another one every time."""
        kind = _STATIC[number]
        pod = make_pod(kind, f"static-{number}", self._make)
        pod["metadata"]["annotations"] = {"soak/edition": f"v-{self._chance.randbytes(4).hex()}"}
        del pod["spec"]["nodeName"]
        beside = self._manifests / f".{number}"
        beside.write_text(yaml.safe_dump(pod))
        beside.rename(self._manifests / f"static-{number}.yaml")

    def statics(self) -> dict[str, str]:
        """The editions that there should be, by name."""
        found = [yaml.safe_load(path.read_text()) for path in self._manifests.glob("*.yaml")]
        return {
            pod["metadata"]["name"]: pod["metadata"]["annotations"]["soak/edition"] for pod in found
        }

    def _took(self, pod: Document, *, acknowledged: bool) -> None:
        complaints = self._ledger.take_created(pod)
        if acknowledged:  # of the others it is the version of now
            self.complaints += complaints
        self._ledger.entries[pod["metadata"]["uid"]].disk_was_full = self.disk_is_full
