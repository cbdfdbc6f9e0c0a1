"""The body of a webhook request: the alert as JSON. Version 1 only ever gains fields."""

import msgspec

from podstatus.alerts.model import Alert
from podstatus.kube.scalars.time import MicroTime

VERSION = 1
MAX_BODY_BYTES = 256 * 1024
"""Annotations are omitted from a body that would be larger."""


class _Subject(msgspec.Struct, frozen=True):
    scope: str
    namespace: str
    name: str
    uid: str
    node: str


class _Message(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    version: int = VERSION
    id: str
    state: str
    rule: str
    severity: str
    subject: _Subject
    labels: dict[str, str]
    annotations: dict[str, str]
    truncated: bool = False
    since: str
    fired: str | None
    resolved: str | None
    link: str


def message_id(alert: Alert) -> str:
    """Return an ID that is the same for every repetition, so that receivers can deduplicate."""
    return f"{alert.id}-{alert.state}"


def webhook_body(alert: Alert, link: str = "") -> bytes:
    """Encode the alert as JSON; `link` is its URL."""
    subject = alert.subject
    message = _Message(
        id=alert.id,
        state=alert.state,
        rule=alert.rule,
        severity=alert.severity,
        subject=_Subject(subject.scope, subject.namespace, subject.name, subject.uid, subject.node),
        labels=dict(alert.labels),
        annotations=dict(alert.annotations),
        since=_time(alert.since) or "",
        fired=_time(alert.fired),
        resolved=_time(alert.resolved),
        link=link,
    )
    body = msgspec.json.encode(message)
    if len(body) <= MAX_BODY_BYTES:
        return body
    short = msgspec.structs.replace(message, annotations={}, truncated=True)
    return msgspec.json.encode(short)


def _time(nanos: int) -> str | None:
    return MicroTime.from_unix_nanos(nanos).wire if nanos else None
