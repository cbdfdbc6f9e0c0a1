"""Tell of alerts by events of the pod or the node, for those who look with kubectl."""

from podstatus.alerts.model import Action, Alert, Subject
from podstatus.events import reasons
from podstatus.events.event import node_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.meta import ObjectReference

_MAX_MESSAGE_LENGTH = 1000
"""Characters: an event has room for 1,024."""


class SubjectEventRecorder:
    """Events about what alerts are about."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def record(self, subject: Subject, reason: str, message: str, *, warning: bool) -> None:
        """Record one."""
        record = self._recorder.warn if warning else self._recorder.normal
        record(subject_reference(subject), reason, message[:_MAX_MESSAGE_LENGTH])


class EventNotifier:
    """The action `event`. What is sent twice after a restart is counted as a repeat."""

    def __init__(self, events: SubjectEventRecorder) -> None:
        self._events = events

    async def send(self, action: Action, alert: Alert) -> None:  # noqa: ARG002 - it has no options
        """Tell that it fires, or does not any more."""
        fires = alert.state == "firing"
        reason = reasons.ALERT_FIRING if fires else reasons.ALERT_RESOLVED
        message = f"{alert.rule}: {alert_summary(alert)}"
        self._events.record(
            alert.subject, reason, message, warning=fires and alert.severity != "info"
        )


def alert_summary(alert: Alert) -> str:
    """What it says in a sentence: its summary, its description, or what it is about."""
    told = alert.annotations.get("summary") or alert.annotations.get("description")
    return told or f"{format_subject(alert.subject)} ({alert.severity})"


def format_subject(subject: Subject) -> str:
    """`pod default/web`, `node node-a`."""
    name = f"{subject.namespace}/{subject.name}" if subject.scope == "pod" else subject.name
    return f"{subject.scope} {name}"


def subject_reference(subject: Subject) -> ObjectReference:
    """What an event about it refers to."""
    if subject.scope == "node":
        return node_reference(subject.name)
    return ObjectReference(
        kind="Pod",
        api_version="v1",
        namespace=subject.namespace,
        name=subject.name,
        uid=subject.uid,
    )
