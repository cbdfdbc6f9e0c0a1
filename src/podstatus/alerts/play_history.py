"""Play a history: pods become what they were, at the times at which they did."""

from collections.abc import Iterable, Sequence

from podstatus.alerts.alert import Alert
from podstatus.alerts.pod_watch import PodWatch
from podstatus.alerts.recorded import after
from podstatus.alerts.rehearsal import Step
from podstatus.alerts.rehearse import Asking
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history.store import Moment
from podstatus.observe.snapshot_cache import Board
from podstatus.observe.transitions.status_transitions import FOREIGN


class Recorded:
    """What happens is what a history tells, in the order of its moments."""

    def __init__(self, asking: Asking, moments: Sequence[Moment]) -> None:
        self._asking = asking
        self._engine = asking.engine
        self._board = Board()
        self._pods = PodWatch(self._board, asking.engine)
        self._moments = moments
        self._next = 0
        self.begin = moments[0].at if moments else 0
        self._end = max((moment.at for moment in moments), default=0)
        self._now = self.begin

    def advance(self, to: int) -> Iterable[tuple[int, list[Alert]]]:
        """What happened until then, and what time alone does; nothing after the last moment.

        Nobody looked any more: what ended later is not in it, and would seem to go on for ever.
        """
        while (at := self._first()) is not None and at <= min(to, self._end):
            self._now = at = max(at, self._now)
            changed = [*self._engine.run_out(at), *self._look_at(self._pods.run_out(at), at)]
            yield at, [*changed, *self._happen(at)]

    def step(self, step: Step, now: int) -> list[Alert]:  # noqa: ARG002 - all is in the history
        """Steps of such a rehearsal only expect."""
        return []

    def _first(self) -> int | None:
        recorded = self._moments[self._next].at if self._next < len(self._moments) else None
        times = (recorded, self._engine.due(), self._pods.due())
        return min((at for at in times if at is not None), default=None)

    def _happen(self, now: int) -> list[Alert]:
        """All moments until now, at once: what belongs together has the same time."""
        before = self._next
        while self._next < len(self._moments) and self._moments[self._next].at <= now:
            self._take(self._moments[self._next], now)
            self._next += 1
        if self._next == before:
            return []
        return self._look_at(self._pods.changed(), now)

    def _look_at(self, uids: Sequence[PodUID], now: int) -> list[Alert]:
        gone, questions = self._pods.look_at(uids, now)
        return [*gone, *self._asking.ask(questions, self._pods.apply)]

    def _take(self, moment: Moment, now: int) -> None:
        if moment.transition.kind == FOREIGN:
            self._pods.foreign_write(moment.uid, now)
        known = self._board.find(moment.uid)
        pod = after(None if known is None else known[1], moment)
        if pod is None:
            self._board.remove(moment.uid)
        else:
            self._board.put(pod)
