"""The request to an Alertmanager, and which rejections concern the alerts."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from podstatus.alerts.model import Action, Alert
from podstatus.alerts.notifiers.alertmanager import AlertmanagerNotifier
from podstatus.alerts.notifiers.http_post import HttpPostClient
from podstatus.alerts.ports import ActionError, RetryableError
from podstatus.base.system_clock import SystemClock
from podstatus.testing.clock import FakeClock
from tests.alerts.sample_alerts import SECOND, firing, resolved
from tests.alerts.sample_alerts import START as AT
from tests.support.webhook_server import WebServer, web_server


async def update(
    server: WebServer, alerts: Sequence[Alert], *, url: str | None = None, **options: str
) -> None:
    http = HttpPostClient(clock=SystemClock())
    notifier = AlertmanagerNotifier(
        http, clock=FakeClock(), url=server.url, link=lambda alert: f"https://n1/{alert.rule}"
    )
    if url is not None:
        options["url"] = url
    try:
        await notifier.send_batch(Action(kind="alertmanager", options=options), alerts)
    finally:
        await http.close()


def posted(alerts: Sequence[Alert]) -> list[dict[str, Any]]:
    async def scene() -> list[dict[str, Any]]:
        async with web_server() as server:
            await update(server, alerts)
        (post,) = server.posts
        assert post.path == "/api/v2/alerts"
        found: list[dict[str, Any]] = post.json()
        return found

    return asyncio.run(scene())


def test_what_fires_ends_four_minutes_ahead_and_what_is_over_ends_when_it_did() -> None:
    first, second = posted([firing("a"), resolved(firing("b", fired=AT - 9 * SECOND), AT - SECOND)])
    assert first == {
        "labels": {"alertname": "CrashLoop", "severity": "warning", "pod": "pod-a"},
        "annotations": {"summary": "pod-a crashes"},
        "startsAt": "2100-01-01T00:00:00.000000Z",
        "endsAt": "2100-01-01T00:04:00.000000Z",
        "generatorURL": "https://n1/CrashLoop",
    }
    assert second["startsAt"] == "2099-12-31T23:59:51.000000Z"
    assert second["endsAt"] == "2099-12-31T23:59:59.000000Z"


def test_what_fired_before_the_clock_was_set_back_does_not_begin_or_end_ahead() -> None:
    ahead = firing("a", fired=AT + 86_400 * SECOND)
    first, second = posted([ahead, resolved(ahead, AT + 86_401 * SECOND)])
    assert first["startsAt"] == "2100-01-01T00:00:00.000000Z"
    assert first["endsAt"] == "2100-01-01T00:04:00.000000Z"
    assert second["startsAt"] == second["endsAt"] == "2100-01-01T00:00:00.000000Z"


def test_names_become_those_of_prometheus() -> None:
    labels = {"app.kubernetes.io/name": "shop", "9lives": "cat", "ok_1": "as it is"}
    (found,) = posted([firing(labels=labels)])
    expected = {"app_kubernetes_io_name": "shop", "_9lives": "cat", "ok_1": "as it is"}
    assert found["labels"] == expected


@pytest.mark.parametrize("path", ["", "/", "/am", "/am/"])
async def test_it_may_be_behind_a_path_and_the_action_names_it_first(
    path: str, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("t-1")
    token.chmod(0o600)

    async with web_server() as named, web_server() as of_settings:
        url = named.url + path
        await update(of_settings, [firing()], url=url, tokenFile=str(token))
    assert not of_settings.posts
    (post,) = named.posts
    assert post.path == path.rstrip("/") + "/api/v2/alerts"
    assert post.headers["authorization"] == "Bearer t-1"


@pytest.mark.parametrize(
    ("code", "is_for_good"),
    [
        (400, True),
        (413, True),
        (422, True),
        (401, False),
        (404, False),
        (410, False),
        (301, False),
        (503, False),
    ],
)
async def test_only_refusals_of_the_alerts_themselves_are_for_good(
    code: int, is_for_good: bool
) -> None:
    async with web_server() as server:
        server.answers = [web.Response(status=code)]
        with pytest.raises(ActionError, match=str(code)) as caught:
            await update(server, [firing()])
        assert isinstance(caught.value, RetryableError) is not is_for_good


async def test_without_a_url_nothing_is_sent() -> None:
    with pytest.raises(ActionError, match="set url in the action"):
        await update(WebServer(), [firing()])


async def test_an_alertmanager_that_quotes_the_token_gets_it_redacted(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t0ken-0123456789")
    token.chmod(0o600)

    async with web_server() as server:
        text = "/api/v2/alerts: t0ken-0123456789 has expired"
        server.answers = [web.Response(status=401, text=text)]
        with pytest.raises(ActionError, match="/api/v2/alerts: <redacted> has expired"):
            await update(server, [firing()], tokenFile=str(token))
