"""Transitions of one alert: pending, firing, no longer holding but kept firing, resolved.

Times are monotonic nanoseconds.
"""

import hashlib
from collections.abc import Mapping

import msgspec

from podstatus.alerts.model import Alert, AlertId, Rule, Subject

_SECOND = 1_000_000_000


def activate(rule: Rule, subject: Subject, now: int, sequence: str) -> Alert:
    """Return a pending alert. `sequence` distinguishes alerts that start at the same time."""
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
    """Return the alert as firing: its rule has held for long enough."""
    return msgspec.structs.replace(alert, state="firing", annotations=annotations, fired=now)


def set_annotations(alert: Alert, annotations: Mapping[str, str]) -> Alert:
    """Return the firing alert with its texts as they are now."""
    if alert.annotations == annotations:
        return alert
    return msgspec.structs.replace(alert, annotations=annotations)


def start_keep_firing(alert: Alert, now: int) -> Alert:
    """Return the alert as no longer holding: it fires until `keepFiringFor` expires."""
    return msgspec.structs.replace(alert, ceased=now)


def reactivate(alert: Alert) -> Alert:
    """Return the alert as holding again, before `keepFiringFor` expired."""
    return msgspec.structs.replace(alert, ceased=0)


def resolve(alert: Alert, now: int) -> Alert:
    """Return the alert as resolved, also if it never fired."""
    return msgspec.structs.replace(
        alert, state="resolved", ceased=alert.ceased or now, resolved=now
    )


def move_to_subject(alert: Alert, rule: Rule, subject: Subject) -> Alert:
    """Update subject and labels, after the pod was bound to a node."""
    if alert.subject == subject:
        return alert
    return msgspec.structs.replace(alert, subject=subject, labels=labels(rule, subject))


def next_transition(alert: Alert, rule: Rule) -> int | None:
    """Return when the alert fires or resolves if nothing else happens; None: never."""
    if alert.state == "pending":
        return alert.since + round(rule.for_seconds * _SECOND)
    if alert.ceased:
        return alert.ceased + round(rule.keep_firing_for_seconds * _SECOND)
    return None


def labels(rule: Rule, subject: Subject) -> dict[str, str]:
    about = {"node": subject.node or (subject.name if subject.scope == "node" else "")}
    if subject.scope == "pod":
        about |= {"namespace": subject.namespace, "pod": subject.name}
    subject_labels = {name: text for name, text in about.items() if text}
    return {**rule.labels, "alertname": rule.name, "severity": rule.severity, **subject_labels}


def _id(rule: Rule, subject: Subject, now: int, number: str) -> AlertId:
    about = (rule.name, subject.scope, subject.namespace, subject.name, subject.uid, now, number)
    text = "\n".join(map(str, about))
    return AlertId(hashlib.blake2b(text.encode(), digest_size=10).hexdigest())
