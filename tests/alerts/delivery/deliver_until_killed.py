"""A process that sends alerts to a webhook until it is killed, and prints what is on its disk.

python -m tests.alerts.delivery.deliver_until_killed FILE URL FIRST [drain]

It says `kept N` when the alert N is on the disk. Those whose number can be divided by 3 never end;
the others do after a while, and all that it finds of another life at once. With `drain` it begins
none, and ends by itself when everything has been sent.
"""

import asyncio
import random
import sys
from pathlib import Path

from podstatus.alerts.delivery.dispatcher import AlertDispatcher
from podstatus.alerts.delivery.store import AlertStore
from podstatus.alerts.model import Action, Alert
from podstatus.alerts.notifiers.http_post import HttpPostClient
from podstatus.alerts.notifiers.webhook import WebhookNotifier
from podstatus.base.system_clock import SystemClock
from tests.alerts.sample_alerts import firing, resolved

PERIOD = 0.003
LASTS = 10


def number_of(alert: Alert) -> int:
    return int(alert.id.split("-")[1])


def end(dispatcher: AlertDispatcher, alert: Alert) -> None:
    if number_of(alert) % 3:
        dispatcher.dispatch(resolved(alert, SystemClock().now()), [])


async def update(path: Path, url: str, first: int, *, drain: bool) -> None:
    """Run the dispatcher for a while."""
    clock = SystemClock()
    http = HttpPostClient(clock=clock)
    notifier = WebhookNotifier(http, clock=clock, link=lambda _: "")
    actions = [Action(kind="webhook", options={"url": url})]
    dispatcher = AlertDispatcher(
        {"webhook": notifier}, AlertStore.open(path), clock=clock, random=random.random
    )
    running = asyncio.create_task(dispatcher.run())
    for alert in dispatcher.restored.values():
        end(dispatcher, alert)
    number = first
    while not drain and not running.done():
        dispatcher.dispatch(firing(str(number)), actions)
        if number - LASTS >= first:
            end(dispatcher, firing(str(number - LASTS)))
        await dispatcher.flushed()
        sys.stdout.write(f"kept {number}\n")
        sys.stdout.flush()
        number += 1
        await asyncio.sleep(PERIOD)
    while any(state.waiting for state in dispatcher.deliveries()):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait({running})
    await http.close()


if __name__ == "__main__":
    asyncio.run(
        update(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), drain="drain" in sys.argv[4:])
    )
