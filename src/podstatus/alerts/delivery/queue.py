"""The delivery queue of one receiver: what it has received, and what is still to be sent.

It decides and does no I/O. A receiver is a kind of action with its options: two rules with the same
webhook share one. The newest state of an alert wins: an alert that resolves before it was sent is
not sent at all. If it is unknown whether the receiver got it, the resolution is sent. Messages
about the same name and rule keep their order, whatever fails in between.
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

DeliveryProgress = Literal["waiting", "tried", "told", "refused"]
"""What a receiver knows of an alert that fires: nothing yet; perhaps; that it fires; nothing, and
it will not be told. When it has been told of the end there is nothing left to know."""

_MAX_TEXT_LENGTH = 4096
"""Characters of a label or an annotation that anybody is told."""
_DIGEST_LENGTH = 6
"""Of a digest: enough to tell a handful of receivers apart."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """How far one receiver of an alert is."""

    action: Action
    progress: DeliveryProgress


class StoredAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert, and how far its receivers are."""

    alert: Alert
    deliveries: Mapping[ReceiverKey, Delivery] = {}

    @property
    def is_done(self) -> bool:
        """Whether nobody has to be told anything any more."""
        return self.alert.state == "resolved" and not self.deliveries

    def with_progress(self, action: Action, progress: DeliveryProgress | None) -> "StoredAlert":
        """After a receiver got on; None: there is nothing left to tell it."""
        deliveries = dict(self.deliveries)
        if progress is None:
            deliveries.pop(receiver_key(action), None)
        else:
            deliveries[receiver_key(action)] = Delivery(action=action, progress=progress)
        return structs.replace(self, deliveries=deliveries)


def receiver_key(action: Action) -> ReceiverKey:
    """The same for all actions that go to the same receiver."""
    options = sorted(action.options.items())
    return ReceiverKey(msgspec.json.encode([action.kind, options]).decode())


def receiver_name(action: Action) -> str:
    """What it is and where, for people: `webhook https://chat.example.org (3f2a91)`.

    Of a URL the host alone: the path is often all that keeps others from using it. The digest
    tells receivers of the same host apart.
    """
    if not action.options:
        return action.kind
    digest = hashlib.sha256(receiver_key(action).encode()).hexdigest()[:_DIGEST_LENGTH]
    where = _origin(action.options.get("url", ""))
    return " ".join(filter(None, (action.kind, where, f"({digest})")))


def sanitize_alert(alert: Alert) -> Alert:
    """The alert with texts that everybody can print and store, of a bounded length."""
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
"""News that wait for a receiver. Half of it is for ends: who knows of a fire should hear of its
end."""
RESOLVED_TTL_NANOS = 3600 * 1_000_000_000
"""How long after an alert is over its end is still worth telling."""


class DeliveryQueue:
    """The book of one receiver; `got_on` is told how far each alert is, None at its end."""

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
        """Of those that wait: what the receiver may have heard that it fires."""
        self._sent: dict[AlertId, Alert] = {}
        self._rejected: set[AlertId] = set()
        self.delivered = 0
        self.dropped = 0

    @property
    def waiting(self) -> int:
        """How many news wait."""
        return len(self._waiting)

    def firing(self) -> list[Alert]:
        """What the receiver knows to fire, and what does so."""
        return [alert for id_, alert in self._sent.items() if id_ not in self._waiting]

    def has(self, id_: AlertId) -> bool:
        """Whether anything is written here about an alert."""
        return id_ in self._waiting or id_ in self._sent or id_ in self._rejected

    # What happens to alerts

    def add(self, alert: Alert) -> bool:
        """An alert fires, or is resolved; whether that is news to the receiver."""
        return self._add_resolved(alert) if alert.state == "resolved" else self._add_firing(alert)

    def restore(self, alert: Alert, progress: DeliveryProgress) -> None:
        """Take up where another process has stopped."""
        if progress == "refused":
            self._rejected.add(alert.id)
        elif progress == "told":
            self._sent[alert.id] = alert
        else:
            self._waiting[alert.id] = alert
            if progress == "tried":
                self._attempted.add(alert.id)
        if alert.state == "resolved":
            self._add_resolved(alert)

    def expire(self, now: int) -> None:
        """Drop ends that are too long ago."""
        late = [
            a
            for a in self._waiting.values()
            if a.resolved and now - a.resolved > RESOLVED_TTL_NANOS
        ]
        for alert in late:
            self.dropped += 1
            self._forget(alert.id)

    # What happens to the receiver

    def next_batch(self, limit: int, blocked: Collection[AlertId] = ()) -> list[Alert]:
        """What is next, without those that are stuck and all that is about the same subjects.

        It waits on until something has become of it.
        """
        about = {_ordering_key(self._waiting[id_]) for id_ in blocked if id_ in self._waiting}
        free = (alert for alert in self._waiting.values() if _ordering_key(alert) not in about)
        return list(islice(free, limit))

    def mark_sending(self, alerts: Sequence[Alert]) -> set[AlertId]:
        """They are about to be told. Those the receiver had certainly not heard of until now."""
        first = {
            alert.id
            for alert in alerts
            if alert.id not in self._attempted and alert.id not in self._sent
        }
        for id_ in first:
            self._attempted.add(id_)
            self._on_progress(id_, "tried")
        return first

    def succeeded(self, alerts: Sequence[Alert]) -> None:
        """The receiver knows."""
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
            self._on_progress(alert.id, "told")

    def rejected(self, alert: Alert) -> None:
        """The receiver will never take this."""
        self.dropped += 1
        if alert.state == "resolved" or self._waiting.get(alert.id) is not alert:
            # It is over: there is nothing to tell of one that was refused.
            self._forget(alert.id)
            return
        self._waiting.pop(alert.id)
        self._attempted.discard(alert.id)
        self._reject(alert.id)

    def failed(self, alerts: Sequence[Alert], not_sent: Collection[AlertId]) -> None:
        """They were not told. `not_sent`: those the receiver has certainly not heard of.

        All about the same subjects go behind the others, in their order: what one of them
        cannot be told for holds up nobody else.
        """
        for id_ in not_sent:
            self._attempted.discard(id_)
            if (newest := self._waiting.get(id_)) is None:
                continue
            if newest.state == "resolved":
                self._forget(id_)
            else:
                self._on_progress(id_, "waiting")
        about = {_ordering_key(alert) for alert in alerts}
        behind = [alert for alert in self._waiting.values() if _ordering_key(alert) in about]
        for alert in behind:
            self._waiting[alert.id] = self._waiting.pop(alert.id)

    def move_to_back(self, alerts: Sequence[Alert]) -> None:
        """Of what fires these come last from now on."""
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
        self._on_progress(alert.id, "waiting")
        return True

    def _add_resolved(self, alert: Alert) -> bool:
        has_heard = alert.id in self._sent or alert.id in self._attempted
        if not has_heard:
            self._forget(alert.id)
            return False
        if len(self._waiting) >= self._max_queued and alert.id not in self._waiting:
            self.dropped += 1
            self._forget(alert.id)
            return False
        self._waiting[alert.id] = alert
        return True

    def _reject(self, id_: AlertId) -> None:
        self._rejected.add(id_)
        self._on_progress(id_, "refused")

    def _forget(self, id_: AlertId) -> None:
        is_known = self.has(id_)
        self._waiting.pop(id_, None)
        self._sent.pop(id_, None)
        self._attempted.discard(id_)
        self._rejected.discard(id_)
        if is_known:
            self._on_progress(id_, None)


def _ordering_key(alert: Alert) -> tuple[str, ...]:
    """The same for a pod that was made anew: an Alertmanager cannot tell it from the one before."""
    subject = alert.subject
    return alert.rule, subject.scope, subject.namespace, subject.name
