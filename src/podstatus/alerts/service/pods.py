"""Which pods are to be asked about, and what is known of them: the board's, and what was before."""

import logging
from collections.abc import Iterable, Sequence

from podstatus.alerts.engine.engine import Engine
from podstatus.alerts.engine.timers import TimerHeap
from podstatus.alerts.evaluator.ports import EvaluationRequest, RuleResults
from podstatus.alerts.model import Alert, Subject
from podstatus.alerts.rules.facts import next_health_change, pod_facts
from podstatus.alerts.rules.warming_up import POD_WINDOW_FACTS
from podstatus.alerts.rules.windows import PodWindows
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.snapshot_cache import SnapshotCache
from podstatus.observe.summary.pod import PodSummary

logger = logging.getLogger(__name__)


class PodSubjects:
    """Asks rules about pods. What cannot be asked about one pod does not touch the others."""

    def __init__(self, cache: SnapshotCache, engine: Engine) -> None:
        self._cache = cache
        self._engine = engine
        self._windows = PodWindows()
        self._timers: TimerHeap[PodUID] = TimerHeap()
        """When something of a pod changes by the time alone."""
        self._subjects: dict[PodUID, Subject] = {}
        """Of all pods that rules were asked about."""
        self._requeued: list[PodUID] = []
        """To be looked at though the board has not changed."""
        self.revision = 0
        """Of the latest change of the board that was seen."""
        self._is_first_pass = True

    @property
    def has_changes(self) -> bool:
        """Whether there is something to look at."""
        return bool(self._is_first_pass or self._requeued or self._cache.revision > self.revision)

    def next_due(self) -> int | None:
        """When something of a pod changes by the time alone; None: never."""
        return self._timers.next_due()

    def foreign_write(self, uid: PodUID, now: int) -> None:
        """Others wrote what is ours of this pod's status."""
        if uid in self._subjects:
            self._windows.foreign_write(uid, now)
            self._requeued.append(uid)

    def step_clock(self, nanos: int) -> None:
        """The clock was set ahead by so much. What is looked at too early for it is so again."""
        self._windows.step_clock(nanos)

    def pop_changed(self) -> Sequence[PodUID]:
        """The pods to look at, also those that are gone; they count as seen."""
        changed = self._cache.changed_since(None if self._is_first_pass else self.revision)
        self._is_first_pass, self.revision = False, changed.revision
        uids = dict.fromkeys((*changed.pods, *self._requeued))
        self._requeued.clear()
        gone = [gone.uid for _, gone in changed.deleted]
        if changed.reset:
            gone = [uid for uid in self._subjects if uid not in uids]
        return (*gone, *uids)

    def requeue(self, uids: Iterable[PodUID]) -> None:
        """These could not be asked about: they are to be looked at again."""
        self._requeued += uids

    def collect(
        self, uids: Iterable[PodUID], now: int
    ) -> tuple[list[Alert], list[EvaluationRequest]]:
        """The alerts of those pods that are gone, and what to ask about the others."""
        changed: list[Alert] = []
        questions: list[EvaluationRequest] = []
        for uid in uids:
            found = self._cache.find(uid)
            try:
                if found is None:
                    changed += self._forget(uid, now)
                else:
                    questions.append(self._request(found[1], now))
            except Exception:
                # A mistake of ours, which the others are not to suffer for.
                logger.exception("rules cannot be asked about a pod: uid=%s", uid)
        return changed, questions

    def pop_due(self, now: int) -> Sequence[PodUID]:
        """The pods to look at because time has passed."""
        return self._timers.pop_due(now)

    def apply(self, question: EvaluationRequest, answers: RuleResults) -> list[Alert]:
        """The alerts that changed by what was answered about a pod."""
        try:
            return self._engine.apply(
                question.subject, answers, question.now, warming_up=question.warming_up
            )
        except Exception:
            # A mistake of ours, which the others are not to suffer for.
            logger.exception("rules cannot be asked about a pod: uid=%s", question.subject.uid)
            return []

    def _request(self, pod: PodSummary, now: int) -> EvaluationRequest:
        self._windows.update(pod, now)
        facts = pod_facts(pod, now, self._windows.counts(pod.uid, now))
        subject = self._subjects[pod.uid] = self._subject(pod)
        whole = self._windows.full_at(pod.uid)
        young = POD_WINDOW_FACTS if now < whole else frozenset[str]()
        moves = [
            it for it in (self._windows.next_change(pod.uid), next_health_change(pod, now)) if it
        ]
        if young and self._engine.has_restored(subject):
            moves.append(whole)
        if moves:
            self._timers.set(pod.uid, min(moves))
        else:
            self._timers.cancel(pod.uid)
        return EvaluationRequest(subject=subject, facts=facts, now=now, warming_up=young)

    def _subject(self, pod: PodSummary) -> Subject:
        known = self._subjects.get(pod.uid)
        if known is not None and known.node == pod.node:
            return known
        return Subject(
            scope="pod", name=pod.name, namespace=pod.namespace, uid=pod.uid, node=pod.node
        )

    def _forget(self, uid: PodUID, now: int) -> list[Alert]:
        self._windows.forget(uid)
        self._timers.cancel(uid)
        subject = self._subjects.pop(uid, None)
        return [] if subject is None else self._engine.subject_removed(subject, now)
