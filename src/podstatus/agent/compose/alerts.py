"""Put together what tells of alerts: rules, what they are asked about, and what they have done."""

import logging
import random
import secrets
from collections.abc import Callable
from pathlib import Path

from podstatus.agent.compose.alert_rules import AlertRules
from podstatus.agent.compose.node import NodeSide
from podstatus.agent.compose.pods import PodSide
from podstatus.agent.settings.model import AgentSettings
from podstatus.alerts.actions.desired_taints import KIND as TAINT
from podstatus.alerts.actions.desired_taints import desired_taints
from podstatus.alerts.actions.guarded_remediation import GuardedRemediation
from podstatus.alerts.actions.node_conditions import KIND as CONDITION
from podstatus.alerts.actions.node_conditions import NodeConditionNotifier, alert_conditions
from podstatus.alerts.actions.node_taints import AlertTaints
from podstatus.alerts.actions.remediations import AlertPods, DeletePod, RestartContainer, TaintNode
from podstatus.alerts.delivery.dispatcher import AlertDispatcher
from podstatus.alerts.delivery.store import AlertStore, AlertStoreError
from podstatus.alerts.engine.engine import Engine
from podstatus.alerts.evaluator.thread import EvaluatorThread
from podstatus.alerts.model import Action, Alert
from podstatus.alerts.notifiers.alertmanager import AlertmanagerNotifier
from podstatus.alerts.notifiers.event import EventNotifier, SubjectEventRecorder
from podstatus.alerts.notifiers.http_post import HttpPostClient
from podstatus.alerts.notifiers.log import LogNotifier
from podstatus.alerts.notifiers.webhook import WebhookNotifier
from podstatus.alerts.ports import AlertNotifier, BatchAlertNotifier, Remediation
from podstatus.alerts.service.alert_service import AlertService, Readiness
from podstatus.base.aio import boottime_ns
from podstatus.base.clock import Clock
from podstatus.client import ApiClient, HttpPodApi
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.node import Taint
from podstatus.node.decide.conditions import AlertCondition
from podstatus.observe.status_view import Observatory
from podstatus.runtime.pleg import Pleg

logger = logging.getLogger(__name__)

ALERTS = "alerts.db"
"""In the root-dir."""
_USUAL = (Action(kind="log"), Action(kind="event"))
_ALERTMANAGER = Action(kind="alertmanager")


class AlertSide:
    """The services of alerts, wired."""

    def __init__(
        self,
        settings: AgentSettings,
        root: Path,
        rules: AlertRules,
        known: Observatory,
        pods: PodSide,
        node: NodeSide,
        taints: AlertTaints,
        view: Pleg,
        recorder: EventRecorder,
        client: ApiClient,
        *,
        is_posted: Callable[[], bool],
        url: Callable[[], str],
        beat: Callable[[], None],
        clock: Clock,
    ) -> None:
        """`is_posted`: whether all pods are on the board; `url`: where the agent is asked."""
        self._clock = clock
        self._rules = rules
        self._url = url
        self._http = HttpPostClient(clock=clock)
        self._evaluator = EvaluatorThread(rules.evaluator)
        self._store = _open(root / ALERTS)
        here = AlertPods(pods.directory, is_synced=lambda: pods.mux.all_sources_ready)
        changes: dict[str, Remediation] = {
            "restartContainer": RestartContainer(here, view, pods.book),
            "deletePod": DeletePod(here, HttpPodApi(client)),
            TAINT: TaintNode(taints),
        }
        events = SubjectEventRecorder(recorder)
        deeds: dict[str, AlertNotifier | BatchAlertNotifier] = {
            "log": LogNotifier(),
            "event": EventNotifier(events),
            "webhook": WebhookNotifier(self._http, clock=clock, link=self._link),
            "alertmanager": AlertmanagerNotifier(
                self._http,
                clock=clock,
                url=settings.alertmanager_url or "",
                link=self._link,
            ),
            CONDITION: NodeConditionNotifier(node.status.request_sync, clock=clock),
        }
        for kind, change in changes.items():
            deeds[kind] = GuardedRemediation(
                kind,
                change,
                rules.allowed,
                events,
                monotonic=boottime_ns,
                is_declarative=kind == TAINT,
            )
        self.watchman = AlertService(
            known,
            Engine(rules.loaded, instance_id=secrets.token_hex(4)),
            self._evaluator,
            AlertDispatcher(deeds, self._store, clock=clock, random=random.random),
            actions=rules.actions(_usual(settings)),
            readiness=Readiness(pods=is_posted, nodes=lambda: _is_whole(node)),
            clock=clock,
            heartbeat=beat,
        )

    def stated(self) -> tuple[AlertCondition, ...]:
        """The conditions that our Node has because of alerts."""
        return alert_conditions(self.watchman.firing(), self._clock.now())

    def wanted_taints(self) -> tuple[Taint, ...]:
        """The taints that our Node is to have because of alerts."""
        return desired_taints(self.watchman.firing(), self._rules.allowed)

    async def close(self) -> None:
        """Let go of the file, of all connections, and of the process that evaluates rules."""
        self._evaluator.close()
        await self._http.close()
        if self._store is not None:
            try:
                self._store.close()
            except AlertStoreError as error:
                logger.warning("alerts not closed: error=%s", error)

    def _link(self, alert: Alert) -> str:
        """Where more is told of an alert, once the agent listens."""
        url = self._url()
        return f"{url}/v1/alerts?rule={alert.rule}" if url else ""


def _usual(settings: AgentSettings) -> tuple[Action, ...]:
    return (*_USUAL, _ALERTMANAGER) if settings.alertmanager_url else _USUAL


def _is_whole(node: NodeSide) -> bool:
    """Whether what is known of our Node is from this life."""
    return node.own.server_copy is not None and node.lease.age_seconds is not None


def _open(path: Path) -> AlertStore | None:
    """The file of alerts; None if it cannot be used: then none outlive the agent."""
    try:
        return AlertStore.open(path)
    except AlertStoreError as error:
        logger.error("alerts will not outlive the agent: error=%s", error)
        return None
