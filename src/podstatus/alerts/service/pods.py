"""Which pods are to be asked about, and what is known of them: the board's, and what was before."""

import logging
from collections.abc import Iterable, Sequence

from podstatus.alerts.engine.engine import Engine
from podstatus.alerts.engine.timers import Deadlines
from podstatus.alerts.evaluator.ports import Answers, Question
from podstatus.alerts.model import Alert, Subject
from podstatus.alerts.rules.facts import health_moves, pod_facts
from podstatus.alerts.rules.warming_up import POD_WINDOWS
from podstatus.alerts.rules.windows import Windows
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.snapshot_cache import Board
from podstatus.observe.summary.pod import PodSummary

logger = logging.getLogger(__name__)


class PodWatch:
    """Asks rules about pods. What cannot be asked about one pod does not touch the others."""

    def __init__(self, board: Board, engine: Engine) -> None:
        self._board = board
        self._engine = engine
        self._windows = Windows()
        self._moves: Deadlines[PodUID] = Deadlines()
        """When something of a pod changes by the time alone."""
        self._subjects: dict[PodUID, Subject] = {}
        """Of all pods that rules were asked about."""
        self._written: list[PodUID] = []
        """To be looked at though the board has not changed."""
        self.number = 0
        """Of the latest change of the board that was seen."""
        self._is_new = True

    @property
    def has_changed(self) -> bool:
        """Whether there is something to look at."""
        return bool(self._is_new or self._written or self._board.number > self.number)

    def due(self) -> int | None:
        """When something of a pod changes by the time alone; None: never."""
        return self._moves.first()

    def foreign_write(self, uid: PodUID, now: int) -> None:
        """Others wrote what is ours of this pod's status."""
        if uid in self._subjects:
            self._windows.foreign_write(uid, now)
            self._written.append(uid)

    def set_ahead(self, nanos: int) -> None:
        """The clock was set ahead by so much. What is looked at too early for it is so again."""
        self._windows.set_ahead(nanos)

    def changed(self) -> Sequence[PodUID]:
        """The pods to look at, also those that are gone; they count as seen."""
        changed = self._board.changed(None if self._is_new else self.number)
        self._is_new, self.number = False, changed.number
        uids = dict.fromkeys((*changed.pods, *self._written))
        self._written.clear()
        gone = [gone.uid for _, gone in changed.gone]
        if changed.anew:
            gone = [uid for uid in self._subjects if uid not in uids]
        return (*gone, *uids)

    def again(self, uids: Iterable[PodUID]) -> None:
        """These could not be asked about: they are to be looked at again."""
        self._written += uids

    def look_at(self, uids: Iterable[PodUID], now: int) -> tuple[list[Alert], list[Question]]:
        """The alerts of those pods that are gone, and what to ask about the others."""
        changed: list[Alert] = []
        questions: list[Question] = []
        for uid in uids:
            found = self._board.find(uid)
            try:
                if found is None:
                    changed += self._forget(uid, now)
                else:
                    questions.append(self._question(found[1], now))
            except Exception:
                # A mistake of ours, which the others are not to suffer for.
                logger.exception("rules cannot be asked about a pod: uid=%s", uid)
        return changed, questions

    def run_out(self, now: int) -> Sequence[PodUID]:
        """The pods to look at because time has passed."""
        return self._moves.pop_until(now)

    def apply(self, question: Question, answers: Answers) -> list[Alert]:
        """The alerts that changed by what was answered about a pod."""
        try:
            return self._engine.apply(question.subject, answers, question.now, young=question.young)
        except Exception:
            # A mistake of ours, which the others are not to suffer for.
            logger.exception("rules cannot be asked about a pod: uid=%s", question.subject.uid)
            return []

    def _question(self, pod: PodSummary, now: int) -> Question:
        self._windows.see(pod, now)
        facts = pod_facts(pod, now, self._windows.counts(pod.uid, now))
        subject = self._subjects[pod.uid] = self._subject(pod)
        whole = self._windows.whole(pod.uid)
        young = POD_WINDOWS if now < whole else frozenset[str]()
        moves = [it for it in (self._windows.moves(pod.uid), health_moves(pod, now)) if it]
        if young and self._engine.has_earlier(subject):
            moves.append(whole)
        if moves:
            self._moves.set(pod.uid, min(moves))
        else:
            self._moves.cancel(pod.uid)
        return Question(subject=subject, facts=facts, now=now, young=young)

    def _subject(self, pod: PodSummary) -> Subject:
        known = self._subjects.get(pod.uid)
        if known is not None and known.node == pod.node:
            return known
        return Subject(
            scope="pod", name=pod.name, namespace=pod.namespace, uid=pod.uid, node=pod.node
        )

    def _forget(self, uid: PodUID, now: int) -> list[Alert]:
        self._windows.forget(uid)
        self._moves.cancel(uid)
        subject = self._subjects.pop(uid, None)
        return [] if subject is None else self._engine.gone(subject, now)
