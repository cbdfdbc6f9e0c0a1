"""A campaign: faults while pods come and go, and calm moments in which everything has to hold."""

import random
import time
from collections import Counter
from pathlib import Path

import msgspec

from tests.soak.agent_log import AgentLog
from tests.soak.churn import PODS, Churn
from tests.soak.faults import Fault, Faults
from tests.soak.history import History
from tests.soak.invariants import Invariants
from tests.soak.kinds import Machine, Maker
from tests.soak.ledger import Ledger
from tests.soak.report import Report, Tally, fault_table, table
from tests.soak.stage import NODE, Stage
from tests.soak.truth import Truth
from tests.soak.watching import Watcher

FAULTS_PER_CALM = 16
SETTLE_SECONDS = 120.0
"""It takes some ten; a busy machine may take its time."""
REST_SECONDS = 12.0
RESTS = 5
"""Of which one has to be quiet: until then events may still be on their way."""
MOST_AT_REST = 12
"""Requests in that time, with nothing but services: the lease, the node's status, a watch that
begins anew, and a few that were on their way."""
MOST_PER_POD_AND_MINUTE = 60.0
"""Requests of any kind. A pod that comes and goes within a minute takes about 20: statuses,
events, its deletion."""
_LINE_SECONDS = 10.0


class ViolatedError(Exception):
    """An invariant does not hold; the arguments say what is wrong."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for."""

    seed: int
    seconds: float
    kills: int = 0
    """So many, and a tenth of them outages and jumps of the clock each, whatever time it takes; 0:
    by time."""

    def is_done(self, seconds: float, groups: Counter[str]) -> bool:
        """Whether it is enough."""
        if self.kills:
            others = min(groups["outage"], groups["jump"])
            return groups["kill"] >= self.kills and others >= self.kills // 10
        return seconds >= self.seconds


class Campaign:
    """On one stage, by one seed."""

    def __init__(self, plan: Plan, stage: Stage, report: Report) -> None:
        self._plan, self._report = plan, report
        self.stage = stage
        self._chance = random.Random(plan.seed)
        self.run_name = run = f"{plan.seed}-{stage.name}"
        isolated = stage.isolation == "bubblewrap"
        machine = Machine(run=run, node=NODE, isolated=isolated, truth=stage.truth)
        self._truth = Truth(stage.truth, run)
        self.ledger = Ledger()
        self.churn = Churn(
            *(stage.server, self.ledger, Maker(machine, self._chance)),
            *(stage.manifests, self._chance),
        )
        self.watcher = Watcher(stage.server.access, History(self._truth.told))
        self._faults = Faults(stage, self.churn, self._truth, self._chance)
        self._faults.on_full_disk = self._disk_is_full
        self.invariants = Invariants(stage, self.churn, self.ledger, self._truth, self.watcher)
        self._log = AgentLog(stage.node.folder / "agent.log")
        self._kinds = self._faults.all()
        self.tally = Tally()
        self._last_line = 0.0

    @property
    def last_fault(self) -> str:
        """Which, and what it was."""
        return f"{self.tally.faults}, since the last calm: {dict(self.tally.open)}"

    def run(self) -> None:
        """All of it. Raises ViolatedError."""
        self.watcher.start()
        self.stage.node.start()
        self.churn.fill()
        self.calm("the beginning")
        while not self._plan.is_done(self._report.seconds, self.tally.groups):
            for _ in range(FAULTS_PER_CALM):
                self._one_fault()
                self._raise(self.complaints())
                self._progress()
            self.calm(f"fault {self.tally.faults}")
        self._rest()
        self.watcher.stop()
        self._raise(self._log.complaints(to_the_end=True))

    def _one_fault(self) -> None:
        self.churn.go_on(self._chance.uniform(0.2, 2.0))
        fault = self._choose()
        if fault.do():
            self.tally.try_(fault.name, fault.group)

    def _choose(self) -> Fault:
        possible = [fault for fault in self._kinds if not fault.not_tried]
        return self._chance.choices(possible, [fault.weight for fault in possible])[0]

    def _disk_is_full(self) -> None:
        there = {path.name for path in self.stage.pod_folders()}
        self.invariants.disk_is_full(there | self.ledger.entries.keys())

    def calm(self, when: str) -> None:
        """Wait until all invariants hold."""
        self._faults.heal()
        began = time.monotonic()
        self.invariants.begin()
        while complaints := self.invariants.look():
            self._raise(self.complaints())
            if time.monotonic() - began > SETTLE_SECONDS:
                raise ViolatedError(*complaints, f"after {SETTLE_SECONDS:g} s of calm")
            time.sleep(0.3)
            self._progress(f"waiting for {len(complaints)}: {complaints[0][:100]}")
        self._raise([*self.complaints(), *self.invariants.judge_gone()])
        seconds = time.monotonic() - began
        self.tally.recovered(seconds)
        self._report.say(f"all is well after {when}, within {seconds:.1f} s")

    def _rest(self) -> None:
        """Keep only what does nothing by itself: then next to nothing is asked of the server."""
        for entry in self.ledger.wanted():
            if entry.kind not in ("service", "daemon", "stubborn"):
                self.churn.delete(entry)
        for path in self.stage.manifests.glob("*.yaml"):
            path.unlink()
        self.calm("the end")
        for _ in range(RESTS):
            before = self.stage.proxy.counted()
            time.sleep(REST_SECONDS)
            asked = self.stage.proxy.counted() - before
            pods = len(self.ledger.wanted())
            self._report.say(f"at rest, {pods} pods, {REST_SECONDS:g} s: {dict(asked)}")
            if asked.total() <= MOST_AT_REST:
                break
        else:
            raise ViolatedError(f"{asked.total()} requests at rest: {dict(asked)}")
        rate = self._per_pod_and_minute()
        if rate > MOST_PER_POD_AND_MINUTE:
            raise ViolatedError(f"{rate:.1f} requests per pod and minute")

    def complaints(self) -> list[str]:
        """Those that need no calm."""
        found = [*self.watcher.complaints(), *self._faults.complaints, *self.churn.complaints]
        if not self.stage.node.is_running:
            found.append(f"the agent has ended by itself, with {self.stage.node.wait()}")
        return [*found, *self._log.complaints()]

    def _raise(self, complaints: list[str]) -> None:
        if complaints:
            raise ViolatedError(*complaints)

    def _progress(self, doing: str = "") -> None:
        now = self._report.seconds
        if now - self._last_line < _LINE_SECONDS:
            return
        self._last_line = now
        groups, (events, ends) = self.tally.groups, self.watcher.seen()
        pods = f"{len(self.ledger.wanted())} pods, {self.ledger.created} created"
        faults = ", ".join(
            f"{groups[name]} {name}s" for name in ("kill", "outage", "jump", "other")
        )
        self._report.say(f"{faults}; {pods}; {events} changes seen, {ends} ends; {doing}".strip())

    def _per_pod_and_minute(self) -> float:
        return self.stage.proxy.counted().total() / PODS / (self._report.seconds / 60)

    def summary(self) -> str:
        """What is to be shown at the end."""
        events, ends = self.watcher.seen()
        counted, seconds = self.stage.proxy.counted(), self._report.seconds
        rows = [
            ("pods created", f"{self.ledger.created}"),
            ("pods deleted", f"{self.ledger.deleted}"),
            ("writes acknowledged and kept", f"{self.ledger.writes}"),
            ("changes seen by the watch", f"{events}"),
            ("ends shown and judged", f"{ends}"),
            ("ends in the truth checked", f"{self.invariants.ends_checked}"),
            ("calm moments", f"{self.tally.calms}"),
            ("longest until all was well", f"{self.tally.longest_recovery:.1f} s"),
            ("requests of the agent", f"{counted.total()}, {counted.total() / seconds:.1f}/s"),
            ("per pod and minute", f"{self._per_pod_and_minute():.1f}"),
            ("stops of the agent by force", f"{self._faults.forced}"),
            ("agent, most memory", f"{self.invariants.most_memory / 2**20:.0f} MiB"),
            ("agent, most open files", f"{self.invariants.most_open_files}"),
        ]
        not_tried = {fault.name: fault.not_tried for fault in self._kinds}
        faults = fault_table(self.tally, not_tried)
        return f"\n{faults}\n{table(('what', 'how much'), rows)}"


def logs(folder: Path) -> str:
    """Where what was written lies."""
    return f"{folder}/node/agent.log, {folder}/server.log, {folder}/truth/, {folder}/root-dir/"
