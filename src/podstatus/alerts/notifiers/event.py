"""The action `event`: reports alerts as events of the pod or the node."""

from podstatus.alerts.model import Action, Alert, Subject
from podstatus.events import reasons
from podstatus.events.object_references import node_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.meta import ObjectReference

_MAX_MESSAGE_LENGTH = 1000
"""Characters; the API server allows 1,024 in an event."""


class SubjectEventRecorder:
    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def record(self, subject: Subject, reason: str, message: str, *, warning: bool) -> None:
        record = self._recorder.warn if warning else self._recorder.normal
        record(subject_reference(subject), reason, message[:_MAX_MESSAGE_LENGTH])


class EventNotifier:
    """Sends alerts as events. An alert that is repeated after a restart increases the event's
    count.
    """

    def __init__(self, events: SubjectEventRecorder) -> None:
        self._events = events

    async def send(self, action: Action, alert: Alert) -> None:  # noqa: ARG002 - it has no options
        """Record that the alert fires or has resolved."""
        is_firing = alert.state == "firing"
        reason = reasons.ALERT_FIRING if is_firing else reasons.ALERT_RESOLVED
        message = f"{alert.rule}: {alert_summary(alert)}"
        self._events.record(
            alert.subject, reason, message, warning=is_firing and alert.severity != "info"
        )


def alert_summary(alert: Alert) -> str:
    """Return one sentence: its summary, its description, or its subject and severity."""
    text = alert.annotations.get("summary") or alert.annotations.get("description")
    return text or f"{alert.subject.scope} {alert.subject.full_name} ({alert.severity})"


def subject_reference(subject: Subject) -> ObjectReference:
    """Return the involvedObject of an event about the subject."""
    if subject.scope == "node":
        return node_reference(subject.name)
    return ObjectReference(
        kind="Pod",
        api_version="v1",
        namespace=subject.namespace,
        name=subject.name,
        uid=subject.uid,
    )
