"""A fake alert reader with fixed alerts."""

from podstatus.alerts.model import Alert, AlertId, AlertState, RuleState, Scope, Severity, Subject
from podstatus.alerts.ports import DeliveryState
from podstatus.kube.objects.pod import PodUID
from tests.support.web.fake_status_view import AT

_SECOND = 1_000_000_000


class FakeAlerts:
    """Returns the alerts, rules and receivers that a test sets."""

    def __init__(self, *alerts: Alert) -> None:
        self.known = {alert.id: alert for alert in alerts}
        self.states = [RuleState(name="CrashLoop", scope="pod", firing=1)]
        self.receivers = [DeliveryState(name="log", delivered=3)]

    def alerts(self) -> dict[AlertId, Alert]:
        return self.known

    def rules(self) -> list[RuleState]:
        return self.states

    def deliveries(self) -> list[DeliveryState]:
        return self.receivers


def an_alert(
    name: str = "web",
    rule: str = "CrashLoop",
    state: AlertState = "firing",
    severity: Severity = "warning",
    scope: Scope = "pod",
    namespace: str = "default",
) -> Alert:
    """An alert that became active at `AT`, and fired 2 minutes later."""
    is_pod = scope == "pod"
    subject = Subject(
        scope=scope,
        name=name,
        namespace=namespace if is_pod else "",
        uid=PodUID(f"uid-{name}" if is_pod else ""),
        node="node-1",
    )
    return Alert(
        id=AlertId(f"{rule}-{scope}-{subject.namespace}-{name}"),
        rule=rule,
        subject=subject,
        state=state,
        severity=severity,
        labels={"alertname": rule, "severity": severity},
        annotations={} if state == "pending" else {"summary": f"{name} is bad"},
        since=AT,
        fired=0 if state == "pending" else AT + 120 * _SECOND,
        ceased=AT + 300 * _SECOND if state == "resolved" else 0,
        resolved=AT + 300 * _SECOND if state == "resolved" else 0,
    )
