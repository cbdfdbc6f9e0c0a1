"""What rules may change: only what the file allows, seldom, and never silently.

    CrashLoop: delete the pod: not done, dryRun is on

Whatever came of it is told as an event of the pod or the node. When an alert resolves, what can be
is taken back, also if the file has ceased to allow it.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from podstatus.alerts.model import Action, Alert, AlertId, RuleSet, Subject
from podstatus.alerts.ports import ActionError, Remediation, RetryableError
from podstatus.base.token_bucket import TokenBucket
from podstatus.events import reasons

_MINUTE = 60 * 1_000_000_000
SUBJECT_RATE_LIMIT = TokenBucket(burst=1, interval_ns=10 * _MINUTE)
"""Of one kind: once in ten minutes for a pod of this name, or a node."""
KIND_RATE_LIMIT = TokenBucket(burst=10, interval_ns=6 * _MINUTE)
"""Ten in an hour, whatever they are done to: a wrong rule does not empty a node at once."""
_MAX_SUBJECTS = 1_000
"""That are remembered; in ten minutes far fewer can have their turn."""


_SubjectName = tuple[str, str, str]
"""Of a subject: scope, namespace, name."""


class AlertEventSink(Protocol):
    """Who tells users what became of a deed. Must not block."""

    def record(self, subject: Subject, reason: str, message: str, *, warning: bool) -> None:
        """Record an event about the pod or the node."""


class GuardedRemediation:
    """A deed of one kind that changes something, behind the guard: a `Deed`."""

    def __init__(
        self,
        kind: str,
        remediation: Remediation,
        rule_set_of: Callable[[str], RuleSet],
        events: AlertEventSink,
        *,
        monotonic: Callable[[], int],
        is_declarative: bool = False,
    ) -> None:
        """`rule_set_of`: what the file of the rule of this name says. `is_declarative`: what is
        done is what all alerts together want, so the change itself sees to it that it is not done
        too often. `monotonic`: nanoseconds of a clock that nobody sets, or setting it would be a
        turn."""
        self._kind = kind
        self._remediation = remediation
        self._rule_set_of = rule_set_of
        self._events = events
        self._monotonic = monotonic
        self._is_declarative = is_declarative
        self._bucket = KIND_RATE_LIMIT
        self._subject_buckets: OrderedDict[_SubjectName, TokenBucket] = OrderedDict()
        self._in_progress: set[AlertId] = set()
        """Whose turn was spent, and who are tried again."""

    async def send(self, action: Action, alert: Alert) -> None:
        """Do it if it may be done. Raises DeedError."""
        if alert.state != "firing":
            self._in_progress.discard(alert.id)
            await self._remediation.revert(action, alert)
            return
        what = self._kind
        try:
            what = self._remediation.describe(action, alert)
            self._require_allowed(alert)
            if self._rule_set_of(alert.rule).dry_run:
                self._report_not_done(alert, what, "dryRun is on")
                return
            self._mark_in_progress(alert.id)
            await self._remediation.apply(action, alert)
        except RetryableError:
            raise
        except ActionError as error:
            self._in_progress.discard(alert.id)
            self._report_not_done(alert, what, str(error))
            raise
        self._in_progress.discard(alert.id)
        self._report(alert, reasons.ALERT_ACTION, f"{what}: done", warning=False)

    def _require_allowed(self, alert: Alert) -> None:
        if self._kind not in self._rule_set_of(alert.rule).allow_actions:
            raise ActionError(f"{self._kind} is not listed in allowActions")
        if not self._is_declarative and not self._try_acquire(alert):
            raise ActionError("it was done too often lately")

    def _mark_in_progress(self, id_: AlertId) -> None:
        if len(self._in_progress) >= _MAX_SUBJECTS:
            # Whoever was given up is not told of here; they only spend another turn.
            self._in_progress.clear()
        self._in_progress.add(id_)

    def _try_acquire(self, alert: Alert) -> bool:
        """Whether it is not too often; one that is tried again has its turn."""
        if alert.id in self._in_progress:
            return True
        now, name = self._monotonic(), _subject_name(alert.subject)
        own, allowed = self._subject_buckets.get(name, SUBJECT_RATE_LIMIT).try_acquire(now)
        if allowed:
            self._bucket, allowed = self._bucket.try_acquire(now)
        if allowed:
            self._subject_buckets[name] = own
            self._subject_buckets.move_to_end(name)
            if len(self._subject_buckets) > _MAX_SUBJECTS:
                self._subject_buckets.popitem(last=False)
        return allowed

    def _report_not_done(self, alert: Alert, what: str, why: str) -> None:
        self._report(alert, reasons.ALERT_ACTION_NOT_DONE, f"{what}: not done, {why}", warning=True)

    def _report(self, alert: Alert, reason: str, message: str, *, warning: bool) -> None:
        self._events.record(alert.subject, reason, f"{alert.rule}: {message}", warning=warning)


def _subject_name(subject: Subject) -> _SubjectName:
    """The same for a pod that was made anew: a limit that each deletion lifts is none."""
    return subject.scope, subject.namespace, subject.name
