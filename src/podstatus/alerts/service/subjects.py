"""The pods and nodes to evaluate, with their facts.

Pods change in the snapshot cache, by the ten-minute windows and by their usage; nodes and the
status sync are sampled periodically.
"""

import logging
from collections.abc import Iterable, Sequence

from podstatus.alerts.engine.engine import Engine
from podstatus.alerts.evaluator.ports import EvaluationRequest, RuleResults
from podstatus.alerts.model import Alert, Subject
from podstatus.alerts.rules.container_usage import ContainerLoads
from podstatus.alerts.rules.fact_variables import (
    MEMORY_FACT,
    POD_WINDOW_FACTS,
    THROTTLING_FACT,
    Facts,
    next_health_change,
    node_facts,
    pod_facts,
    sync_facts,
    warming_up_node_facts,
)
from podstatus.alerts.rules.windows import PodWindows
from podstatus.base.timer_heap import TimerHeap
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.ports import ContainerUsage, StatusView
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.observe.summary.pod import PodSummary

logger = logging.getLogger(__name__)


class PodSubjects:
    """Requests evaluations of pods. An error for one pod does not affect the others.

    Times are monotonic nanoseconds, except for the `wall` time with which pods are described.
    """

    def __init__(self, cache: SnapshotCache, engine: Engine) -> None:
        self._cache = cache
        self._engine = engine
        self._windows = PodWindows()
        self._loads = ContainerLoads()
        self._timers: TimerHeap[PodUID] = TimerHeap()
        """When a fact of a pod changes by time alone."""
        self._subjects: dict[PodUID, Subject] = {}
        """The subjects of all pods that were evaluated."""
        self._requeued: list[PodUID] = []
        """Pods to evaluate although the cache has no change for them."""
        self.revision = 0
        """Revision of the snapshot cache up to which changes were read."""
        self._is_first_pass = True

    @property
    def has_changes(self) -> bool:
        """True if there are pods to evaluate."""
        return bool(self._is_first_pass or self._requeued or self._cache.revision > self.revision)

    def next_due(self) -> int | None:
        """Return when a fact of a pod changes by time alone; None: never."""
        return self._timers.next_due()

    def foreign_write(self, uid: PodUID, now: int) -> None:
        """Count a write to the pod's status by another client, and evaluate the pod."""
        # A new pod may not have been evaluated yet.
        if uid in self._subjects or self._cache.find(uid) is not None:
            self._windows.foreign_write(uid, now)
            self._requeued.append(uid)

    def usage_measured(self, usage: ContainerUsage, now: int) -> None:
        """Take the usage of containers, and evaluate the pods for which it matters."""
        self._requeued += (uid for uid in self._loads.update(usage, now) if uid in self._subjects)

    def pop_changed(self) -> Sequence[PodUID]:
        """Return the pods to evaluate, including removed ones, and mark the changes as read."""
        changed = self._cache.changed_since(None if self._is_first_pass else self.revision)
        self._is_first_pass, self.revision = False, changed.revision
        uids = dict.fromkeys((*changed.pods, *self._requeued))
        self._requeued.clear()
        removed = [pod.uid for _, pod in changed.deleted]
        if changed.reset:
            removed = [uid for uid in self._subjects if uid not in uids]
        return (*removed, *uids)

    def requeue(self, uids: Iterable[PodUID]) -> None:
        """Evaluate these pods again: their evaluation failed."""
        self._requeued += uids

    def collect(
        self, uids: Iterable[PodUID], now: int, *, wall: int
    ) -> tuple[list[Alert], list[EvaluationRequest]]:
        """Return the resolved alerts of removed pods, and requests for the others."""
        changed: list[Alert] = []
        requests: list[EvaluationRequest] = []
        for uid in uids:
            current = self._cache.find(uid)
            try:
                if current is None:
                    changed += self._forget(uid, now)
                else:
                    requests.append(self._request(current[1], now, wall))
            except Exception:
                # A bug in the facts of one pod must not affect the others.
                logger.exception("cannot collect the facts of a pod: uid=%s", uid)
        return changed, requests

    def pop_due(self, now: int) -> Sequence[PodUID]:
        """Return the pods with facts that changed by time alone."""
        return self._timers.pop_due(now)

    def apply(self, request: EvaluationRequest, results: RuleResults) -> list[Alert]:
        """Apply the results for a pod; return the alerts that changed."""
        try:
            return self._engine.apply(
                request.subject, results, request.now, warming_up=request.warming_up
            )
        except Exception:
            # A bug in one rule's state must not affect the other pods.
            logger.exception("cannot apply rule results to a pod: uid=%s", request.subject.uid)
            return []

    def _request(self, pod: PodSummary, now: int, wall: int) -> EvaluationRequest:
        self._windows.update(pod, now)
        counts, load = self._windows.counts(pod.uid, now), self._loads.evaluate(pod.uid)
        facts = pod_facts(pod, wall, counts, load)
        subject = self._subjects[pod.uid] = self._subject(pod)
        complete_at = self._windows.full_at(pod.uid)
        warming_up = self._warming_up(pod.uid) if now < complete_at else frozenset[str]()
        times = []
        if (moves := self._windows.next_change(pod.uid)) is not None:
            times.append(moves)
        if (changes := next_health_change(pod, wall)) is not None:
            times.append(now + changes - wall)
        if warming_up and self._engine.has_restored(subject):
            times.append(complete_at)
        if times:
            self._timers.set(pod.uid, min(times))
        else:
            self._timers.cancel(pod.uid)
        return EvaluationRequest(subject=subject, facts=facts, now=now, warming_up=warming_up)

    def _warming_up(self, uid: PodUID) -> frozenset[str]:
        memory = () if self._loads.is_measured(uid) else (MEMORY_FACT,)
        return POD_WINDOW_FACTS.union((THROTTLING_FACT, *memory))

    def _subject(self, pod: PodSummary) -> Subject:
        subject = self._subjects.get(pod.uid)
        if subject is not None and subject.node == pod.node:
            return subject
        return Subject(
            scope="pod", name=pod.name, namespace=pod.namespace, uid=pod.uid, node=pod.node
        )

    def _forget(self, uid: PodUID, now: int) -> list[Alert]:
        self._windows.forget(uid)
        self._loads.forget(uid)
        self._timers.cancel(uid)
        subject = self._subjects.pop(uid, None)
        return [] if subject is None else self._engine.subject_removed(subject, now)


class NodeSubjects:
    """Requests evaluations of nodes whose facts have changed."""

    def __init__(self, view: StatusView, engine: Engine) -> None:
        self._view = view
        self._engine = engine
        self._last_facts: dict[str, tuple[Facts, frozenset[str]] | None] = {}
        """The facts of the last evaluation of each node; None: it failed."""
        self._watched_since: int | None = None

    def sample(self, now: int) -> tuple[list[Alert], list[EvaluationRequest]]:
        """Return the resolved alerts of removed nodes, and requests for changed ones."""
        if self._watched_since is None:
            self._watched_since = now
        watched = now - self._watched_since
        nodes, sync, knowledge = self._view.nodes(), self._view.sync(), self._view.freshness()
        extra = sync_facts(sync, knowledge)
        # An observer evaluates the rules of all nodes: none of them is the cause.
        over_budget = () if sync is None else self._engine.disabled_rules
        changed: list[Alert] = []
        for name in [name for name in self._last_facts if name not in nodes]:
            del self._last_facts[name]
            changed += self._engine.subject_removed(_subject(name), now)
        requests = []
        for node in nodes.values():
            warming_up = warming_up_node_facts(node, sync, knowledge, watched)
            own = node_facts(node, knowledge, over_budget)
            facts = {**own, **extra}
            if (facts, warming_up) != self._last_facts.get(node.name):
                self._last_facts[node.name] = None
                subject = _subject(node.name)
                requests.append(
                    EvaluationRequest(subject=subject, facts=facts, now=now, warming_up=warming_up)
                )
        return changed, requests

    def apply(self, request: EvaluationRequest, results: RuleResults) -> list[Alert]:
        """Apply the results for a node; return the alerts that changed."""
        subject = request.subject
        try:
            changed = self._engine.apply(
                subject, results, request.now, warming_up=request.warming_up
            )
        except Exception:
            # A bug in one rule's state must not affect the other nodes.
            logger.exception("cannot apply rule results to a node: node=%s", subject.name)
            return []
        self._last_facts[subject.name] = request.facts, request.warming_up
        return changed


def _subject(name: str) -> Subject:
    return Subject(scope="node", name=name, node=name)
