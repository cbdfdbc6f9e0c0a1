"""Tells everybody who is to know of an alert: when it begins to fire, and when it is over.

    dispatcher = Dispatcher(deeds, store, clock=clock, random=random.random)
    engine.restore([kept.alert for kept in dispatcher.restored if …])
    tasks.create_task(dispatcher.run())
    dispatcher.tell(alert, rule.actions)     # of every change of an alert, also while it is pending

Each receiver has a task and a book of its own: one that hangs holds up nobody. What is told is
noted on the disk before and after, so over a restart nothing is lost, and nothing told twice but
what was under way in the moment of a kill. Why so: docs/decisions/0036-who-is-told.md.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from podstatus.alerts.delivery.persister import AlertPersister
from podstatus.alerts.delivery.queue import ReceiverKey, receiver_key, sanitize_alert
from podstatus.alerts.delivery.receiver import Receiver
from podstatus.alerts.delivery.store import AlertStore
from podstatus.alerts.model import Action, Alert, AlertId
from podstatus.alerts.ports import ActionError, AlertNotifier, BatchAlertNotifier, DeliveryState
from podstatus.base.clock import Clock

logger = logging.getLogger(__name__)

_SHUTDOWN_SECONDS = 1.0
"""How long tries that are under way may take at the end."""
_CANCEL_SECONDS = 0.1


class AlertDispatcher:
    """All receivers. For one event loop; nothing but `run` waits."""

    def __init__(
        self,
        notifiers: Mapping[str, AlertNotifier | BatchAlertNotifier],
        store: AlertStore | None,
        *,
        clock: Clock,
        random: Callable[[], float],
    ) -> None:
        """`notifiers` by the kind of action. Without a store nothing outlives the process."""
        self._notifiers = notifiers
        self._clock = clock
        self._random = random
        self._persister = AlertPersister(store, clock=clock)
        self._receivers: dict[ReceiverKey, Receiver] = {}
        self._new_receiver = asyncio.Event()
        self._tasks: dict[ReceiverKey, asyncio.Task[None]] = {}
        self.restored: Mapping[AlertId, Alert] = self._restore()
        """What lived when another process stopped: pending and firing, for the engine. Tell once
        more of those that still fire: their rules may have got other actions."""

    @property
    def problem(self) -> str:
        """Why alerts are not written to the disk at the moment; empty: they are."""
        return self._persister.problem

    def dispatch(self, alert: Alert, actions: Sequence[Action]) -> None:
        """An alert has changed. Who was told that it fires is told of its end, whatever the
        actions are then."""
        alert = sanitize_alert(alert)
        self._persister.save(alert)
        if alert.state == "firing":
            for action in actions:
                self._receiver(action).add(alert)
        elif alert.state == "resolved":
            for receiver in self._receivers.values():
                if receiver.queue.has(alert.id):
                    receiver.add(alert)

    def deliveries(self) -> Sequence[DeliveryState]:
        """How all receivers fare."""
        return [receiver.state for receiver in self._receivers.values()]

    async def run(self) -> None:
        """Tell until cancelled. Then what is under way has a second, and the disk another."""
        keeping = asyncio.create_task(self._persister.run())
        try:
            while True:
                self._new_receiver.clear()
                self._start_tasks()
                await self._new_receiver.wait()
        finally:
            await self._stop_tasks()
            keeping.cancel()
            await asyncio.wait({keeping})

    def _restore(self) -> dict[AlertId, Alert]:
        found = dict(self._persister.stored_alerts)
        for kept in found.values():
            for delivery in kept.deliveries.values():
                self._receiver(delivery.action).restore(kept.alert, delivery.progress)
        alerts = {id_: kept.alert for id_, kept in found.items()}
        return {id_: alert for id_, alert in alerts.items() if alert.state != "resolved"}

    def _receiver(self, action: Action) -> Receiver:
        key = receiver_key(action)
        if key not in self._receivers:
            deed = self._notifiers.get(action.kind, _UnknownNotifier())
            self._receivers[key] = Receiver(
                action, deed, persister=self._persister, clock=self._clock, random=self._random
            )
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
        # What does not even end when it is cancelled is left to itself.
        await _wait_all(self._tasks.values(), _CANCEL_SECONDS)


async def _wait_all(tasks: Collection[asyncio.Task[None]], seconds: float) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=seconds)


class _UnknownNotifier:
    """Stands for kinds of actions that there are none of here."""

    async def send(self, action: Action, alert: Alert) -> None:  # noqa: ARG002
        """Nobody knows how."""
        raise ActionError(
            f"there are no actions of the kind {action.kind!r} here; see docs/alert-rules.md"
        )
