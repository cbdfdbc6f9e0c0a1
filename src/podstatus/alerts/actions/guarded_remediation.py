"""Guard of the actions that change the cluster: allowed by the rule file, rate limited, reported.

    CrashLoop: delete the pod: not done, dryRun is on

Every outcome is recorded as an event of the pod or the node. When an alert resolves, its action is
reverted if it can be, even if the rule file no longer allows it.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from podstatus.alerts.model import Action, Alert, AlertId, RuleSet, Subject
from podstatus.alerts.ports import ActionError, Remediation, RetryableError
from podstatus.base.clock import Clock
from podstatus.base.token_bucket import TokenBucket
from podstatus.events import reasons
from podstatus.kube.api_errors import ApiError, DeniedError, RejectedError

_MINUTE = 60 * 1_000_000_000
SUBJECT_RATE_LIMIT = TokenBucket(burst=1, interval_ns=10 * _MINUTE)
"""For one action kind and one subject: once in ten minutes for a pod of this name, or a node."""
KIND_RATE_LIMIT = TokenBucket(burst=10, interval_ns=6 * _MINUTE)
"""For one action kind: ten an hour over all subjects, so that a wrong rule cannot empty a node."""
_MAX_SUBJECTS = 1_000
"""Subjects whose rate limits are retained; far fewer can act within ten minutes."""


_SubjectName = tuple[str, str, str]
"""Scope, namespace and name of a subject."""


class AlertEventSink(Protocol):
    """Records the outcome of an action as an event. Must not block."""

    def record(self, subject: Subject, reason: str, message: str, *, warning: bool) -> None:
        """Record an event about the pod or the node."""


class GuardedRemediation:
    """An `AlertNotifier` that runs a remediation of one kind behind the guard."""

    def __init__(
        self,
        kind: str,
        remediation: Remediation,
        rule_set_of: Callable[[str], RuleSet],
        events: AlertEventSink,
        *,
        clock: Clock,
        is_declarative: bool,
    ) -> None:
        """`rule_set_of` returns the rule set that the rule of this name belongs to.

        `is_declarative`: the remediation applies what all alerts together request and limits its
        own rate."""
        self._kind = kind
        self._remediation = remediation
        self._rule_set_of = rule_set_of
        self._events = events
        self._clock = clock
        self._is_declarative = is_declarative
        self._bucket = KIND_RATE_LIMIT
        self._subject_buckets: OrderedDict[_SubjectName, TokenBucket] = OrderedDict()
        self._in_progress: set[AlertId] = set()
        """Alerts that have acquired the rate limit and are being retried."""

    async def send(self, action: Action, alert: Alert) -> None:
        """Apply or revert the remediation. Raises ActionError."""
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
            raise ActionError("the rate limit is exceeded")

    def _mark_in_progress(self, id_: AlertId) -> None:
        if len(self._in_progress) >= _MAX_SUBJECTS:
            # An alert whose delivery was abandoned never reports back; a retry only acquires again.
            self._in_progress.clear()
        self._in_progress.add(id_)

    def _try_acquire(self, alert: Alert) -> bool:
        """Acquire the rate limits; a retry of the same alert has acquired them already."""
        if alert.id in self._in_progress:
            return True
        now, name = self._clock.monotonic(), _subject_name(alert.subject)
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
    """The same for a re-created pod: a limit that a deletion resets would be no limit."""
    return subject.scope, subject.namespace, subject.name


@contextmanager
def map_api_errors() -> Iterator[None]:
    """Raise ActionError for a denied or rejected request, RetryableError for any other failure."""
    try:
        yield
    except DeniedError as error:
        raise ActionError(f"the API server denied the request: {error}") from error
    except RejectedError as error:
        raise ActionError(f"the API server rejected the request: {error}") from error
    except ApiError as error:
        raise RetryableError(str(error)) from error
