"""Dispatch alerts to their receivers when they fire and when they resolve.

    dispatcher = AlertDispatcher(notifiers, store, clock=clock, random=random.random)
    engine.restore(dispatcher.restored.values())
    tasks.create_task(dispatcher.run())
    dispatcher.dispatch(alert, rule.actions)     # for every change, also while it is pending

Each receiver has a task and a queue of its own, so one that hangs does not delay the others.
Progress is written to disk before and after each delivery: across a restart nothing is lost, and
only a delivery that was in flight during a kill is repeated. Design:
docs/decisions/0036-alert-delivery.md.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from podstatus.alerts.delivery.decide.queue import ReceiverKey, receiver_key, sanitize_alert
from podstatus.alerts.delivery.persister import AlertPersister
from podstatus.alerts.delivery.receiver_loop import Receiver
from podstatus.alerts.delivery.store import AlertStore
from podstatus.alerts.model import Action, Alert, AlertId
from podstatus.alerts.ports import ActionError, AlertNotifier, BatchAlertNotifier, DeliveryState
from podstatus.base.clock import Clock

logger = logging.getLogger(__name__)

_SHUTDOWN_SECONDS = 1.0
"""How long deliveries in flight may take on shutdown."""
_CANCEL_SECONDS = 0.1


class AlertDispatcher:
    """All receivers. For one event loop; only `run` awaits."""

    def __init__(
        self,
        notifiers: Mapping[str, AlertNotifier | BatchAlertNotifier],
        store: AlertStore | None,
        *,
        clock: Clock,
        random: Callable[[], float],
        standby: bool = False,
        may_send: Callable[[], bool] = lambda: True,
    ) -> None:
        """`notifiers` by action kind. Without a store, nothing survives the process.

        `standby`: another process notifies until `take_over` is called. `may_send` is asked right
        before each attempt.
        """
        self._notifiers = notifiers
        self._clock = clock
        self._random = random
        self._is_standby = standby
        self._may_send = may_send
        self._persister = AlertPersister(store, clock=clock)
        self._receivers: dict[ReceiverKey, Receiver] = {}
        self._new_receiver = asyncio.Event()
        self._tasks: dict[ReceiverKey, asyncio.Task[None]] = {}
        self.restored: Mapping[AlertId, Alert] = self._restore()
        """Pending and firing alerts of the previous process, for the engine. Dispatch those that
        still fire once more: their rules may have other actions now."""

    @property
    def problem(self) -> str:
        """Why alerts are currently not written to disk; empty if they are."""
        return self._persister.problem

    def dispatch(self, alert: Alert, actions: Sequence[Action]) -> None:
        """Queue a changed alert. A receiver that got the firing alert also gets its resolution,
        even if the actions have changed since."""
        alert = sanitize_alert(alert)
        self._persister.save(alert)
        if alert.state == "firing":
            for action in actions:
                self._receiver(action).add(alert)
        elif alert.state == "resolved":
            for receiver in self._receivers.values():
                if receiver.queue.has(alert.id):
                    receiver.add(alert)

    def stand_by(self) -> None:
        """Let another process notify from now on: end all attempts, and only queue."""
        self._is_standby = True
        for receiver in self._receivers.values():
            receiver.stand_by()

    def take_over(self) -> None:
        """Notify from now on. What the former leader may have sent already is sent once more: all
        firing alerts, and those that resolved within the last minutes."""
        self._is_standby = False
        for receiver in self._receivers.values():
            receiver.take_over()

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of actions that it has notifiers for."""
        return frozenset(self._notifiers)

    async def flushed(self) -> None:
        """Wait until all changes up to now are on disk."""
        await self._persister.flushed()

    def deliveries(self) -> Sequence[DeliveryState]:
        return [receiver.state for receiver in self._receivers.values()]

    async def run(self) -> None:
        """Deliver until cancelled; then wait a second for deliveries in flight and for the disk."""
        persisting = asyncio.create_task(self._persister.run())
        try:
            while True:
                self._new_receiver.clear()
                self._start_tasks()
                await self._new_receiver.wait()
        finally:
            await self._stop_tasks()
            persisting.cancel()
            await asyncio.wait({persisting})

    def _restore(self) -> dict[AlertId, Alert]:
        stored = dict(self._persister.stored_alerts)
        for entry in stored.values():
            for delivery in entry.deliveries.values():
                self._receiver(delivery.action).restore(entry.alert, delivery.progress)
        if self._is_standby:
            self.stand_by()
        alerts = {id_: entry.alert for id_, entry in stored.items()}
        return {id_: alert for id_, alert in alerts.items() if alert.state != "resolved"}

    def _receiver(self, action: Action) -> Receiver:
        key = receiver_key(action)
        if key not in self._receivers:
            notifier = self._notifiers.get(action.kind, _UnknownNotifier())
            receiver = Receiver(
                action,
                notifier,
                persister=self._persister,
                clock=self._clock,
                random=self._random,
                may_send=self._may_send,
            )
            if self._is_standby:
                receiver.stand_by()
            self._receivers[key] = receiver
            self._new_receiver.set()
        return self._receivers[key]

    def _start_tasks(self) -> None:
        for key, receiver in self._receivers.items():
            if key not in self._tasks:
                self._tasks[key] = asyncio.create_task(receiver.run())

    async def _stop_tasks(self) -> None:
        for key, task in self._tasks.items():
            receiver = self._receivers[key]
            receiver.stop()
            if not receiver.is_sending:
                task.cancel()
        await _wait_all(self._tasks.values(), _SHUTDOWN_SECONDS)
        for task in self._tasks.values():
            task.cancel()
        # A task that ignores its cancellation is abandoned.
        await _wait_all(self._tasks.values(), _CANCEL_SECONDS)


async def _wait_all(tasks: Collection[asyncio.Task[None]], seconds: float) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=seconds)


class _UnknownNotifier:
    """Rejects alerts for an action kind that this process does not have."""

    async def send(self, action: Action, alert: Alert) -> None:  # noqa: ARG002
        raise ActionError(
            f"action kind {action.kind!r} is not available here; see docs/reference/alerting.md"
        )
