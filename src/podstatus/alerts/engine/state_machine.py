"""One life of an alert, step by step: it holds, it fires, it ceases, it is over.

Times are nanoseconds since the Unix epoch.
"""

import hashlib
from collections.abc import Mapping

import msgspec

from podstatus.alerts.model import Alert, AlertId, Rule, Subject

_SECOND = 1_000_000_000


def activate(rule: Rule, subject: Subject, now: int, sequence: str) -> Alert:
    """It holds from now on. The number tells it from others that begin at the same time."""
    return Alert(
        id=_id(rule, subject, now, sequence),
        rule=rule.name,
        subject=subject,
        state="pending",
        severity=rule.severity,
        labels=labels(rule, subject),
        since=now,
    )


def fire(alert: Alert, annotations: Mapping[str, str], now: int) -> Alert:
    """It has held for long enough."""
    return msgspec.structs.replace(alert, state="firing", annotations=annotations, fired=now)


def start_keep_firing(alert: Alert, now: int) -> Alert:
    """It does not hold any more, but fires on for a while."""
    return msgspec.structs.replace(alert, ceased=max(now, alert.since))


def reactivate(alert: Alert) -> Alert:
    """It holds again before that while is over."""
    return msgspec.structs.replace(alert, ceased=0)


def resolve(alert: Alert, now: int) -> Alert:
    """It is over; also if it has never fired. No end is before its beginning, nor ahead."""
    alert = clamp_times(alert, now)
    return msgspec.structs.replace(
        alert, state="resolved", ceased=alert.ceased or now, resolved=now
    )


def clamp_times(alert: Alert, now: int) -> Alert:
    """The clock says less than when it began, fired or ceased: that was now."""
    if max(alert.since, alert.fired, alert.ceased) <= now:
        return alert
    since, fired, ceased = (min(at, now) for at in (alert.since, alert.fired, alert.ceased))
    return msgspec.structs.replace(alert, since=since, fired=fired, ceased=ceased)


def shift_times(alert: Alert, nanos: int) -> Alert:
    """The clock was set ahead by so much: nothing has waited for longer by that."""
    if alert.state == "pending":
        return msgspec.structs.replace(alert, since=alert.since + nanos)
    if alert.ceased:
        return msgspec.structs.replace(alert, ceased=alert.ceased + nanos)
    return alert


def move_to_subject(alert: Alert, rule: Rule, subject: Subject) -> Alert:
    """Its subject is elsewhere now: a node has taken the pod."""
    if alert.subject == subject:
        return alert
    return msgspec.structs.replace(alert, subject=subject, labels=labels(rule, subject))


def next_transition(alert: Alert, rule: Rule) -> int | None:
    """When it fires, or is over, if nothing else happens; None: never."""
    if alert.state == "pending":
        return alert.since + round(rule.for_seconds * _SECOND)
    if alert.ceased:
        return alert.ceased + round(rule.keep_firing_for_seconds * _SECOND)
    return None


def labels(rule: Rule, subject: Subject) -> dict[str, str]:
    """Those of the rule, and what it is about."""
    about = {"node": subject.node or (subject.name if subject.scope == "node" else "")}
    if subject.scope == "pod":
        about |= {"namespace": subject.namespace, "pod": subject.name}
    told = {name: text for name, text in about.items() if text}
    return {**rule.labels, "alertname": rule.name, "severity": rule.severity, **told}


def _id(rule: Rule, subject: Subject, now: int, number: str) -> AlertId:
    about = (rule.name, subject.scope, subject.namespace, subject.name, subject.uid, now, number)
    text = "\n".join(map(str, about))
    return AlertId(hashlib.blake2b(text.encode(), digest_size=10).hexdigest())
