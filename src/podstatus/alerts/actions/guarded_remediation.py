"""What rules may change: only what the file allows, seldom, and never silently.

    CrashLoop: delete the pod: not done, dryRun is on

Whatever came of it is told as an event of the pod or the node. When an alert resolves, what can be
is taken back, also if the file has ceased to allow it.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from podstatus.alerts.model import Action, Alert, AlertId, RuleSet, Subject
from podstatus.alerts.ports import Change, DeedError, TransientDeedError
from podstatus.base.token_bucket import TokenBucket
from podstatus.events import reasons

_MINUTE = 60 * 1_000_000_000
PER_SUBJECT = TokenBucket(burst=1, interval_ns=10 * _MINUTE)
"""Of one kind: once in ten minutes for a pod of this name, or a node."""
PER_KIND = TokenBucket(burst=10, interval_ns=6 * _MINUTE)
"""Ten in an hour, whatever they are done to: a wrong rule does not empty a node at once."""
_MOST_SUBJECTS = 1_000
"""That are remembered; in ten minutes far fewer can have their turn."""


_Name = tuple[str, str, str]
"""Of a subject: scope, namespace, name."""


class Telling(Protocol):
    """Who tells users what became of a deed. Must not block."""

    def tell(self, subject: Subject, reason: str, message: str, *, warning: bool) -> None:
        """Record an event about the pod or the node."""


class Guarded:
    """A deed of one kind that changes something, behind the guard: a `Deed`."""

    def __init__(
        self,
        kind: str,
        change: Change,
        allowed: Callable[[str], RuleSet],
        telling: Telling,
        *,
        monotonic: Callable[[], int],
        is_level: bool = False,
    ) -> None:
        """`allowed`: what the file of the rule of this name says. `is_level`: what is done is what
        all alerts together want, so the change itself sees to it that it is not done too often.
        `monotonic`: nanoseconds of a clock that nobody sets, or setting it would be a turn."""
        self._kind = kind
        self._change = change
        self._allowed = allowed
        self._telling = telling
        self._monotonic = monotonic
        self._is_level = is_level
        self._left = PER_KIND
        self._left_of: OrderedDict[_Name, TokenBucket] = OrderedDict()
        self._begun: set[AlertId] = set()
        """Whose turn was spent, and who are tried again."""

    async def do(self, action: Action, alert: Alert) -> None:
        """Do it if it may be done. Raises DeedError."""
        if alert.state != "firing":
            self._begun.discard(alert.id)
            await self._change.undo(action, alert)
            return
        what = self._kind
        try:
            what = self._change.say(action, alert)
            self._check(alert)
            if self._allowed(alert.rule).dry_run:
                self._tell_not_done(alert, what, "dryRun is on")
                return
            self._begin(alert.id)
            await self._change.do(action, alert)
        except TransientDeedError:
            raise
        except DeedError as error:
            self._begun.discard(alert.id)
            self._tell_not_done(alert, what, str(error))
            raise
        self._begun.discard(alert.id)
        self._tell(alert, reasons.ALERT_ACTION, f"{what}: done", warning=False)

    def _check(self, alert: Alert) -> None:
        if self._kind not in self._allowed(alert.rule).allow_actions:
            raise DeedError(f"{self._kind} is not listed in allowActions")
        if not self._is_level and not self._has_turn(alert):
            raise DeedError("it was done too often lately")

    def _begin(self, id_: AlertId) -> None:
        if len(self._begun) >= _MOST_SUBJECTS:
            # Whoever was given up is not told of here; they only spend another turn.
            self._begun.clear()
        self._begun.add(id_)

    def _has_turn(self, alert: Alert) -> bool:
        """Whether it is not too often; one that is tried again has its turn."""
        if alert.id in self._begun:
            return True
        now, name = self._monotonic(), _name(alert.subject)
        own, allowed = self._left_of.get(name, PER_SUBJECT).try_acquire(now)
        if allowed:
            self._left, allowed = self._left.try_acquire(now)
        if allowed:
            self._left_of[name] = own
            self._left_of.move_to_end(name)
            if len(self._left_of) > _MOST_SUBJECTS:
                self._left_of.popitem(last=False)
        return allowed

    def _tell_not_done(self, alert: Alert, what: str, why: str) -> None:
        self._tell(alert, reasons.ALERT_ACTION_NOT_DONE, f"{what}: not done, {why}", warning=True)

    def _tell(self, alert: Alert, reason: str, message: str, *, warning: bool) -> None:
        self._telling.tell(alert.subject, reason, f"{alert.rule}: {message}", warning=warning)


def _name(subject: Subject) -> _Name:
    """The same for a pod that was made anew: a limit that each deletion lifts is none."""
    return subject.scope, subject.namespace, subject.name
