"""Build the alert services: rule evaluation, notifiers, remediations, delivery."""

import random
import secrets
from collections.abc import Callable, Iterator

from podstatus.agent.compose.alert_receivers import AlertReceivers
from podstatus.agent.compose.alert_rules import AlertRules
from podstatus.agent.compose.dependencies import AgentDependencies
from podstatus.agent.compose.node_services import AgentNodeServices
from podstatus.agent.compose.pod_services import PodServices
from podstatus.agent.settings.model import AgentSettings
from podstatus.alerts.actions.desired_taints import KIND as TAINT
from podstatus.alerts.actions.desired_taints import desired_taints
from podstatus.alerts.actions.guarded_remediation import GuardedRemediation
from podstatus.alerts.actions.node_conditions import KIND as CONDITION
from podstatus.alerts.actions.node_conditions import NodeConditionNotifier, alert_conditions
from podstatus.alerts.actions.node_taints import AlertTaints
from podstatus.alerts.actions.remediations import AlertPods, DeletePod, RestartContainer, TaintNode
from podstatus.alerts.delivery.dispatcher import AlertDispatcher
from podstatus.alerts.engine.engine import Engine
from podstatus.alerts.evaluator.budgeted_evaluator import EvaluatorThread
from podstatus.alerts.model import Action, Alert, RuleSet
from podstatus.alerts.notifiers.event import EventNotifier, SubjectEventRecorder
from podstatus.alerts.ports import AlertNotifier, BatchAlertNotifier, Remediation
from podstatus.alerts.service.alert_service import AlertService, Readiness, firing_actions
from podstatus.base.clock import Clock
from podstatus.client import HttpPodApi
from podstatus.kube.objects.node import Taint
from podstatus.node.decide.conditions import AlertCondition
from podstatus.observe.ports import StatusView

_DEFAULT_ACTIONS = (Action(kind="log"), Action(kind="event"))
_ALERTMANAGER_ACTION = Action(kind="alertmanager")


class FiringAlerts:
    """What the firing alerts request of the Node; nothing if alerts are disabled."""

    def __init__(self, settings: AgentSettings, rules: AlertRules | None, clock: Clock) -> None:
        self._clock = clock
        self._rule_set = (lambda _: RuleSet()) if rules is None else rules.rule_set
        self.engine = Engine(() if rules is None else rules.rules, instance_id=secrets.token_hex(4))
        self.actions = {} if rules is None else rules.actions(_default_actions(settings))

    def node_conditions(self) -> tuple[AlertCondition, ...]:
        return alert_conditions(self._firing(), self._clock.monotonic())

    def desired_taints(self) -> tuple[Taint, ...]:
        return desired_taints(self._firing(), self._rule_set)

    def _firing(self) -> Iterator[tuple[Alert, Action]]:
        return firing_actions(self.engine.alerts().values(), self.actions)


class AlertServices:
    """The alert services of a node, connected with each other."""

    def __init__(
        self,
        dependencies: AgentDependencies,
        rules: AlertRules,
        firing: FiringAlerts,
        status_view: StatusView,
        pods: PodServices,
        node: AgentNodeServices,
        taints: AlertTaints,
        *,
        url: Callable[[], str],
    ) -> None:
        """`url` returns the agent's URL, empty before it listens."""
        settings, clock = dependencies.settings, dependencies.clock
        self._evaluator = EvaluatorThread(rules.evaluator)
        self._receivers = AlertReceivers(settings, dependencies.root.path, clock, url=url)
        alert_pods = AlertPods(pods.pod_manager, is_synced=pods.all_sources_ready)
        remediations: dict[str, Remediation] = {
            "restartContainer": RestartContainer(alert_pods, dependencies.pleg, pods.probe_results),
            "deletePod": DeletePod(alert_pods, HttpPodApi(dependencies.clients.node)),
            TAINT: TaintNode(taints),
        }
        events = SubjectEventRecorder(dependencies.recorder)
        notifiers: dict[str, AlertNotifier | BatchAlertNotifier] = {
            **self._receivers.notifiers,
            "event": EventNotifier(events),
            CONDITION: NodeConditionNotifier(dependencies.signals.node_changed, clock=clock),
        }
        for kind, remediation in remediations.items():
            notifiers[kind] = GuardedRemediation(
                kind,
                remediation,
                rules.rule_set,
                events,
                clock=clock,
                is_declarative=kind == TAINT,
            )
        self.service = AlertService(
            status_view,
            firing.engine,
            self._evaluator,
            AlertDispatcher(notifiers, self._receivers.store, clock=clock, random=random.random),
            actions=firing.actions,
            readiness=Readiness(pods=pods.is_snapshot_complete, nodes=node.is_synced),
            clock=clock,
            heartbeat=dependencies.heartbeats.register(
                "alerts", max_silent_seconds=60, is_vital=False
            ),
        )
        dependencies.signals.foreign_write.connect(self.service.foreign_write)

    async def close(self) -> None:
        """Close the evaluator process, all connections and the alert database."""
        self._evaluator.close()
        await self._receivers.close()


def _default_actions(settings: AgentSettings) -> tuple[Action, ...]:
    return (
        (*_DEFAULT_ACTIONS, _ALERTMANAGER_ACTION) if settings.alertmanager_url else _DEFAULT_ACTIONS
    )
