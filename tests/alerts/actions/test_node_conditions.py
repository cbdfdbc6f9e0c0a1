"""Node conditions of alerts: a status update is triggered at once, within the rate limit."""

import pytest

from podstatus.alerts.actions.node_conditions import NodeConditionNotifier
from podstatus.alerts.model import Action, Alert, AlertId, Subject
from podstatus.alerts.ports import ActionError
from podstatus.testing.clock import FakeClock

ALERT = Alert(
    id=AlertId("1"),
    rule="Bad",
    subject=Subject(scope="node", name="n", node="n"),
    state="firing",
    since=1,
    fired=2,
)


class Scene:
    def __init__(self) -> None:
        self.clock, self.looks = FakeClock(), 0
        self.notifier = NodeConditionNotifier(self._look, clock=self.clock)

    def _look(self) -> None:
        self.looks += 1

    async def reports(self, times: int, *, seconds: float) -> int:
        """Return the number of status updates of an alert that changes this often."""
        before = self.looks
        for _ in range(times):
            await self.notifier.send(Action(kind="nodeCondition", options={"type": "Bad"}), ALERT)
            await self.clock.advance(seconds)
        return self.looks - before


async def test_the_status_of_the_node_is_made_at_once() -> None:
    assert await Scene().reports(3, seconds=0) == 3


async def test_a_rule_that_flaps_has_it_made_every_ten_seconds_after_a_while() -> None:
    async def scene() -> None:
        scene = Scene()
        assert await scene.reports(50, seconds=0.01) == 5
        assert await scene.reports(600, seconds=0.1) == 6
        await scene.clock.advance(60)
        assert await scene.reports(3, seconds=0) == 3

    await scene()


async def test_a_type_that_cannot_be_is_refused() -> None:
    with pytest.raises(ActionError):
        await Scene().notifier.send(Action(kind="nodeCondition", options={"type": "a/b/c"}), ALERT)
