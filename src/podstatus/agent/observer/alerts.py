"""Build the alert services of an observer: rules for all observed pods and nodes, and receivers.

An observer changes neither pods nor nodes. Only rules with the action `event` have it create
events. Tests: tests/agent/observer/test_observer_alerts.py.
"""

import asyncio
import platform
import random
import secrets
from collections.abc import Callable

from podstatus.agent.compose.alert_receivers import AlertReceivers
from podstatus.agent.compose.alert_rules import AlertRules
from podstatus.agent.daemon.run_agent import AgentContext
from podstatus.agent.errors import EXIT_CONFIG, AgentError
from podstatus.agent.settings.model import AgentSettings
from podstatus.alerts.delivery.dispatcher import AlertDispatcher
from podstatus.alerts.engine.engine import Engine
from podstatus.alerts.evaluator.budgeted_evaluator import EvaluatorThread
from podstatus.alerts.model import Action
from podstatus.alerts.notifiers.event import EventNotifier, SubjectEventRecorder
from podstatus.alerts.ports import AlertNotifier, BatchAlertNotifier
from podstatus.alerts.service.alert_service import AlertService, Readiness
from podstatus.base.clock import Clock
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.client import ApiClient
from podstatus.client.typed.events import HttpEventSink
from podstatus.events.rate_limits import EventPolicy
from podstatus.events.recorder import EventRecorder
from podstatus.observe.ports import StatusView

EVENT_COMPONENT = "podstatus-observer"
_ACTION_KINDS = ("log", "event", "webhook", "alertmanager")
"""The actions that an observer has: the others change a node or its pods."""
_DRAIN_SECONDS = 1.0
"""Time to send pending events at a stop."""


class ObserverAlerts:
    """The alert services of an observer, connected with each other."""

    def __init__(
        self,
        context: AgentContext,
        rules: AlertRules,
        client: ApiClient,
        status_view: StatusView,
        *,
        readiness: Readiness,
        heartbeats: Heartbeats,
        clock: Clock,
        url: Callable[[], str],
    ) -> None:
        """`url` returns the observer's URL, empty before it listens. Raises AgentError for rules
        with actions that an observer does not have."""
        settings = context.settings
        actions = rules.actions(_default_actions(settings))
        _check_actions(rules)
        self._evaluator = EvaluatorThread(rules.evaluator)
        self._receivers = AlertReceivers(settings, context.root.path, clock, url=url)
        notifiers: dict[str, AlertNotifier | BatchAlertNotifier] = {**self._receivers.notifiers}
        self._recorder: EventRecorder | None = None
        if any(action.kind == "event" for chosen in actions.values() for action in chosen):
            self._recorder = _build_recorder(settings, client, heartbeats, clock)
            notifiers["event"] = EventNotifier(SubjectEventRecorder(self._recorder))
        self.service = AlertService(
            status_view,
            Engine(rules.rules, instance_id=secrets.token_hex(4)),
            self._evaluator,
            AlertDispatcher(notifiers, self._receivers.store, clock=clock, random=random.random),
            actions=actions,
            readiness=readiness,
            clock=clock,
            heartbeat=heartbeats.register("alerts", max_silent_seconds=60, is_vital=False),
        )

    async def run(self) -> None:
        """Evaluate and deliver until cancelled; then send pending events."""
        recorder = self._recorder
        if recorder is None:
            await self.service.run()
            return
        recording = asyncio.create_task(recorder.run(), name="events")
        try:
            await self.service.run()
        finally:
            recording.cancel()
            await asyncio.wait({recording})
            await recorder.drain(_DRAIN_SECONDS)

    async def close(self) -> None:
        """Close the evaluator process, all connections and the alert database."""
        self._evaluator.close()
        await self._receivers.close()


def _default_actions(settings: AgentSettings) -> tuple[Action, ...]:
    """Unlike an agent, an observer records no events unless a rule requests it."""
    log = Action(kind="log")
    return (log, Action(kind="alertmanager")) if settings.alertmanager_url else (log,)


def _check_actions(rules: AlertRules) -> None:
    """Raise AgentError if a rule has an action that an observer does not have."""
    errors = [
        f"--alert-rules: rule {loaded.rule.name}, line {action.place.line}: an observer has no "
        f"action {action.kind}, since it changes no pods and nodes; use "
        f"{', '.join(_ACTION_KINDS)}, or give this rule to the agents of the nodes"
        for loaded in rules.rules
        for action in loaded.rule.actions
        if action.kind not in _ACTION_KINDS
    ]
    if errors:
        raise AgentError("\n".join(errors), code=EXIT_CONFIG)


def _build_recorder(
    settings: AgentSettings, client: ApiClient, heartbeats: Heartbeats, clock: Clock
) -> EventRecorder:
    return EventRecorder(
        HttpEventSink(client),
        host=platform.node(),
        component=EVENT_COMPONENT,
        clock=clock,
        policy=EventPolicy(qps=settings.event_qps, burst=settings.event_burst),
        heartbeat=heartbeats.register("events", max_silent_seconds=300),
    )
