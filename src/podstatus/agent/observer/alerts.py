"""Build the alert services of an observer: rules for all observed pods and nodes, and receivers.

An observer changes neither pods nor nodes. Only rules with the action `event` have it create
events. Of several observers, the one that leads notifies: all evaluate, so that another one can
take over at any time. Design: docs/decisions/0055-alerts-of-observers.md. Tests:
tests/agent/observer/test_observer_alerts.py.
"""

import asyncio
import platform
import random
import secrets
from collections.abc import Callable

import msgspec

from podstatus.agent.compose.alert_receivers import AlertReceivers
from podstatus.agent.compose.alert_rules import AlertRules
from podstatus.agent.daemon.run_agent import AgentContext
from podstatus.agent.errors import EXIT_CONFIG, AgentError
from podstatus.agent.observer.leadership import Leadership
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


class AlertedView(msgspec.Struct, frozen=True):
    """What the rules are evaluated for."""

    status: StatusView
    readiness: Readiness


class ObserverAlerts:
    """The alert services of an observer, connected with each other."""

    def __init__(
        self,
        context: AgentContext,
        rules: AlertRules,
        client: ApiClient,
        view: AlertedView,
        *,
        heartbeats: Heartbeats,
        clock: Clock,
        url: Callable[[], str],
        leadership: Leadership | None,
    ) -> None:
        """`url` returns the observer's URL, empty before it listens; `leadership`: None if this is
        the only observer. Raises AgentError for rules with actions that an observer does not have.
        """
        settings = context.settings
        self._leadership = leadership
        actions = rules.actions(_default_actions(settings))
        _check_actions(rules)
        self._evaluator = EvaluatorThread(rules.evaluator)
        self._receivers = AlertReceivers(settings, context.root.path, clock, url=url)
        notifiers: dict[str, AlertNotifier | BatchAlertNotifier] = {**self._receivers.notifiers}
        self._recorder: EventRecorder | None = None
        if any(action.kind == "event" for chosen in actions.values() for action in chosen):
            self._recorder = _build_recorder(settings, client, heartbeats, clock)
            notifiers["event"] = EventNotifier(SubjectEventRecorder(self._recorder))
        dispatcher = AlertDispatcher(
            notifiers,
            self._receivers.store,
            clock=clock,
            random=random.random,
            standby=leadership is not None,
            may_send=lambda: leadership is None or leadership.is_leading,
        )
        if leadership is not None:
            leadership.connect(dispatcher)
        self.service = AlertService(
            view.status,
            Engine(rules.rules, instance_id=secrets.token_hex(4)),
            self._evaluator,
            dispatcher,
            actions=actions,
            readiness=view.readiness,
            clock=clock,
            heartbeat=heartbeats.register("alerts", max_silent_seconds=60, is_vital=False),
        )

    async def run(self) -> None:
        """Evaluate and deliver until cancelled; then send pending events and release the Lease."""
        async with asyncio.TaskGroup() as tasks:
            others = []
            if self._leadership is not None:
                others.append(tasks.create_task(self._leadership.run(), name="leader election"))
            if self._recorder is not None:
                others.append(tasks.create_task(self._record_events(self._recorder), name="events"))
            try:
                await self.service.run()
            finally:
                # The Lease is released last: what follows is sent by another observer.
                for task in reversed(others):
                    task.cancel()
                    await asyncio.wait({task})

    async def _record_events(self, recorder: EventRecorder) -> None:
        try:
            await recorder.run()
        finally:
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
