"""The delivery queue of one receiver: what it has received, and what is still to be sent.

It decides and does no I/O. A receiver is a kind of action with its options: two rules with the same
webhook share one. The newest state of an alert wins: an alert that resolves before it was sent is
not sent at all. If it is unknown whether the receiver got it, the resolution is sent. Messages
about the same name and rule keep their order, whatever fails in between.

On standby another process notifies. The queue then holds what that process may not have sent: the
firing alerts, and the latest resolution of each rule and subject for a few minutes. It does not
know what was sent, so after a takeover all of it is sent.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Literal, NewType
from urllib.parse import urlsplit

import msgspec
from msgspec import structs

from podstatus.alerts.model import Action, Alert, AlertId
from podstatus.observe.summary.pod import sanitize_text

ReceiverKey = NewType("ReceiverKey", str)

DeliveryProgress = Literal["waiting", "tried", "sent", "refused"]
"""What a receiver knows about a firing alert: nothing yet; perhaps that it fires; that it fires;
nothing, because it was dropped or rejected. After the resolution is sent there is no progress."""

_MAX_TEXT_LENGTH = 4096
"""Characters in a label or an annotation that is sent."""
_DIGEST_LENGTH = 6
"""Hex digits of a digest: enough to distinguish a handful of receivers."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of one receiver of an alert."""

    action: Action
    progress: DeliveryProgress


class StoredAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert, and the progress of its deliveries."""

    alert: Alert
    deliveries: Mapping[ReceiverKey, Delivery] = {}

    @property
    def is_done(self) -> bool:
        """True if the alert is resolved and nothing is left to deliver."""
        return self.alert.state == "resolved" and not self.deliveries

    def with_progress(self, action: Action, progress: DeliveryProgress | None) -> "StoredAlert":
        """Return a copy with the progress of a receiver; None removes it."""
        deliveries = dict(self.deliveries)
        if progress is None:
            deliveries.pop(receiver_key(action), None)
        else:
            deliveries[receiver_key(action)] = Delivery(action=action, progress=progress)
        return structs.replace(self, deliveries=deliveries)


def receiver_key(action: Action) -> ReceiverKey:
    """Return the key that all actions with the same receiver share."""
    options = sorted(action.options.items())
    return ReceiverKey(msgspec.json.encode([action.kind, options]).decode())


def receiver_name(action: Action) -> str:
    """Return kind and address for display: `webhook https://chat.example.org (3f2a91)`.

    Only the host of a URL is included: the path is often the secret that protects it. The digest
    distinguishes receivers on the same host.
    """
    if not action.options:
        return action.kind
    digest = hashlib.sha256(receiver_key(action).encode()).hexdigest()[:_DIGEST_LENGTH]
    where = _origin(action.options.get("url", ""))
    return " ".join(filter(None, (action.kind, where, f"({digest})")))


def sanitize_alert(alert: Alert) -> Alert:
    """Return the alert with printable texts of bounded length."""
    return structs.replace(
        alert, labels=_sanitize_texts(alert.labels), annotations=_sanitize_texts(alert.annotations)
    )


def _sanitize_texts(texts: Mapping[str, str]) -> dict[str, str]:
    return {
        sanitize_text(name, _MAX_TEXT_LENGTH): sanitize_text(text, _MAX_TEXT_LENGTH)
        for name, text in texts.items()
    }


def _origin(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if not host:
        return ""
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "")


MAX_QUEUED = 20_000
"""Messages queued for a receiver. Firing alerts may use half of it, so that a receiver that got a
firing alert also gets its resolution."""
RESOLVED_TTL_NANOS = 3600 * 1_000_000_000
"""How long after an alert resolved its resolution is still sent."""
STANDBY_TTL_NANOS = 600 * 1_000_000_000
"""The same after a takeover, for resolutions that the former leader has probably sent."""


class DeliveryQueue:
    """The queue of one receiver; `on_progress` is called with the progress of each alert, None at
    its end.
    """

    def __init__(
        self,
        on_progress: Callable[[AlertId, DeliveryProgress | None], None],
        *,
        max_queued: int = MAX_QUEUED,
    ) -> None:
        self._on_progress = on_progress
        self._max_queued = max_queued
        self._waiting: dict[AlertId, Alert] = {}
        self._attempted: set[AlertId] = set()
        """Queued alerts of which the receiver may already know that they fire."""
        self._sent: dict[AlertId, Alert] = {}
        self._rejected: set[AlertId] = set()
        self._resolved_at: dict[AlertId, int] = {}
        """When queued resolutions were added, in monotonic nanoseconds."""
        self._is_standby = False
        self._standby_resolved: dict[str, AlertId] = {}
        """The latest resolution of each deduplication key while on standby."""
        self.delivered = 0
        self.dropped = 0

    @property
    def waiting(self) -> int:
        """The number of messages to send; none on standby."""
        return 0 if self._is_standby else len(self._waiting)

    def firing(self) -> list[Alert]:
        """Return the alerts that the receiver knows to fire and that still do."""
        return [alert for id_, alert in self._sent.items() if id_ not in self._waiting]

    def has(self, id_: AlertId) -> bool:
        """True if the alert is queued, sent or rejected."""
        return id_ in self._waiting or id_ in self._sent or id_ in self._rejected

    # Leadership

    def stand_by(self) -> None:
        """Another process notifies from now on: the receiver may learn anything from it."""
        self._is_standby = True
        for id_, alert in self._sent.items():
            self._waiting.setdefault(id_, alert)
        self._sent.clear()
        for id_ in self._waiting:
            self._mark_attempted(id_)

    def take_over(self, now: int) -> None:
        """Notify from now on: all that is queued is sent, except for old resolutions."""
        self.expire(now)
        self._is_standby = False
        self._standby_resolved.clear()

    # Changes of alerts

    def add(self, alert: Alert, now: int) -> bool:
        """Queue an alert that fired or resolved at `now`, monotonic; return whether there is
        something to send.
        """
        if alert.state == "resolved":
            return self._add_resolved(alert, now)
        return self._add_firing(alert)

    def restore(self, alert: Alert, progress: DeliveryProgress, changed_at: int) -> None:
        """Continue with the progress of the previous process; `changed_at` is monotonic."""
        if progress == "refused":
            self._rejected.add(alert.id)
        elif progress == "sent":
            self._sent[alert.id] = alert
        else:
            self._waiting[alert.id] = alert
            if progress == "tried":
                self._attempted.add(alert.id)
        if alert.state == "resolved":
            self._add_resolved(alert, changed_at)

    def expire(self, now: int) -> None:
        """Drop resolutions that are older than RESOLVED_TTL_NANOS, or STANDBY_TTL_NANOS."""
        ttl = STANDBY_TTL_NANOS if self._is_standby else RESOLVED_TTL_NANOS
        for id_ in [id_ for id_, at in self._resolved_at.items() if now - at > ttl]:
            self.dropped += not self._is_standby
            self._forget(id_)

    # Outcomes of deliveries

    def next_batch(self, limit: int, blocked: Collection[AlertId] = ()) -> list[Alert]:
        """Return the next messages, without blocked alerts and others with the same ordering key.

        They stay queued until their outcome is recorded.
        """
        keys = {_ordering_key(self._waiting[id_]) for id_ in blocked if id_ in self._waiting}
        free = (alert for alert in self._waiting.values() if _ordering_key(alert) not in keys)
        return list(islice(free, limit))

    def mark_sending(self, alerts: Sequence[Alert]) -> set[AlertId]:
        """Mark the alerts as tried; return those the receiver certainly did not know."""
        first = {
            alert.id
            for alert in alerts
            if alert.id not in self._attempted and alert.id not in self._sent
        }
        for id_ in first:
            self._mark_attempted(id_)
        return first

    def succeeded(self, alerts: Sequence[Alert]) -> None:
        """Record that the receiver got the alerts."""
        for alert in alerts:
            self.delivered += 1
            is_newest = self._waiting.get(alert.id) is alert
            if alert.state == "resolved":
                self._forget(alert.id)
                continue
            if is_newest:
                del self._waiting[alert.id]
            self._attempted.discard(alert.id)
            self._sent[alert.id] = alert
            self._on_progress(alert.id, "sent")

    def rejected(self, alert: Alert) -> None:
        """Record that the receiver rejected the alert permanently."""
        self.dropped += 1
        if alert.state == "resolved" or self._waiting.get(alert.id) is not alert:
            # Resolved by now; the receiver never accepted that it fired, so there is nothing to
            # send.
            self._forget(alert.id)
            return
        self._waiting.pop(alert.id)
        self._attempted.discard(alert.id)
        self._reject(alert.id)

    def failed(self, alerts: Sequence[Alert], not_sent: Collection[AlertId]) -> None:
        """Record a failed attempt. `not_sent`: IDs that certainly did not reach the receiver.

        All alerts with the same ordering key move to the back, in their order, so that one that
        always fails does not delay the others.
        """
        for id_ in () if self._is_standby else not_sent:
            self._attempted.discard(id_)
            if (newest := self._waiting.get(id_)) is None:
                continue
            if newest.state == "resolved":
                self._forget(id_)
            else:
                self._on_progress(id_, "waiting")
        keys = {_ordering_key(alert) for alert in alerts}
        behind = [alert for alert in self._waiting.values() if _ordering_key(alert) in keys]
        for alert in behind:
            self._waiting[alert.id] = self._waiting.pop(alert.id)

    def move_to_back(self, alerts: Sequence[Alert]) -> None:
        """Repeat these alerts last from now on."""
        for alert in alerts:
            if alert.id in self._sent:
                self._sent[alert.id] = self._sent.pop(alert.id)

    def _add_firing(self, alert: Alert) -> bool:
        if alert.id in self._sent:
            self._sent[alert.id] = alert
        if self.has(alert.id):
            return False
        if len(self._waiting) >= self._max_queued // 2:
            self.dropped += 1
            self._reject(alert.id)
            return False
        self._waiting[alert.id] = alert
        if self._is_standby:
            self._mark_attempted(alert.id)
            self._supersede_resolution(alert.dedup_key)
        else:
            self._on_progress(alert.id, "waiting")
        return True

    def _add_resolved(self, alert: Alert, now: int) -> bool:
        may_be_known = alert.id in self._sent or alert.id in self._attempted
        if not may_be_known:
            self._forget(alert.id)
            return False
        if len(self._waiting) >= self._max_queued and alert.id not in self._waiting:
            self.dropped += 1
            self._forget(alert.id)
            return False
        self._waiting[alert.id] = alert
        self._resolved_at[alert.id] = now
        if self._is_standby:
            self._supersede_resolution(alert.dedup_key)
            self._standby_resolved[alert.dedup_key] = alert.id
        return True

    def _supersede_resolution(self, dedup_key: str) -> None:
        """Forget the previous resolution: a newer message of the same key replaces it."""
        if (previous := self._standby_resolved.pop(dedup_key, None)) is not None:
            self._forget(previous)

    def _mark_attempted(self, id_: AlertId) -> None:
        if id_ not in self._attempted:
            self._attempted.add(id_)
            self._on_progress(id_, "tried")

    def _reject(self, id_: AlertId) -> None:
        self._rejected.add(id_)
        self._on_progress(id_, "refused")

    def _forget(self, id_: AlertId) -> None:
        has_progress = self.has(id_)
        self._waiting.pop(id_, None)
        self._sent.pop(id_, None)
        self._attempted.discard(id_)
        self._rejected.discard(id_)
        self._resolved_at.pop(id_, None)
        if has_progress:
            self._on_progress(id_, None)


def _ordering_key(alert: Alert) -> tuple[str, ...]:
    """The same for a re-created pod, which an Alertmanager cannot distinguish from the old one."""
    subject = alert.subject
    return alert.rule, subject.scope, subject.namespace, subject.name
