"""The log line of an alert."""

import logging

import pytest

from podstatus.alerts.model import Action, Subject
from podstatus.alerts.notifiers.log import LogNotifier
from tests.alerts.sample_alerts import firing, resolved


async def test_one_line_when_it_fires_and_one_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = firing(
        "n", severity="critical", subject=Subject(scope="node", name="n1"), annotations={}
    )
    with caplog.at_level(logging.INFO):
        for alert in (firing(), resolved(firing()), node):
            await LogNotifier().send(Action(kind="log"), alert)
    rest = "rule=CrashLoop severity=warning subject=pod web/pod-a since=2099-12-31T23:59:00Z "
    rest += "id=CrashLoop-a-1 summary=pod-a crashes"
    assert [record.message for record in caplog.records[:2]] == [
        f"alert firing: {rest}",
        f"alert resolved: {rest}",
    ]
    assert "subject=node n1 " in caplog.records[2].message
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "ERROR"]
