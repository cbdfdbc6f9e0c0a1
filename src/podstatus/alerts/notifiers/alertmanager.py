"""The action `alertmanager`: sends alerts to the API v2 of a Prometheus Alertmanager."""

from collections.abc import Callable, Sequence

from podstatus.alerts.model import Action, Alert
from podstatus.alerts.notifiers.http_post import HttpPostClient, PostRejectedError, PostRequest
from podstatus.alerts.notifiers.messages.alertmanager_message import alertmanager_body
from podstatus.alerts.notifiers.secret_files import bearer_header, read_with_timeout
from podstatus.alerts.ports import ActionError, NotSentError
from podstatus.base.clock import Clock

RESEND_SECONDS = 60.0
_MAX_BATCH = 64
"""Alerts in a request, as in Prometheus."""
_PATH = "/api/v2/alerts"
_GONE = 410
"""An Alertmanager never answers 410 for alerts: another server does."""


class AlertmanagerNotifier:
    """Options: `url`, by default that of the settings; `tokenFile`, `caFile`."""

    max_batch = _MAX_BATCH

    def __init__(
        self,
        http: HttpPostClient,
        *,
        clock: Clock,
        url: str,
        link: Callable[[Alert], str],
        resend_seconds: float = RESEND_SECONDS,
    ) -> None:
        """`url` if the action has none; `link` returns the URL of an alert."""
        self._http = http
        self._clock = clock
        self._url = url
        self._link = link
        self.resend_seconds = resend_seconds

    async def send_batch(self, action: Action, alerts: Sequence[Alert]) -> None:
        """Send the alerts in one request. Raises ActionError."""
        url = action.options.get("url") or self._url
        if not url:
            raise ActionError("no Alertmanager URL; set url in the action or in the settings")
        body = alertmanager_body(
            alerts, now=self._clock.now(), resend_seconds=self.resend_seconds, link=self._link
        )
        post = PostRequest(
            url=url.rstrip("/") + _PATH,
            body=body,
            headers=await read_with_timeout(bearer_header, action.options.get("tokenFile", "")),
            ca_file=action.options.get("caFile", ""),
        )
        try:
            await self._http.send(post)
        except PostRejectedError as error:
            if error.code != _GONE:
                raise
            raise NotSentError(str(error)) from error
