"""The action `alertmanager`: alerts to the API v2 of a Prometheus Alertmanager."""

from collections.abc import Callable, Sequence

from podstatus.alerts.model import Action, Alert
from podstatus.alerts.notifiers.alertmanager_message import alertmanager_body
from podstatus.alerts.notifiers.file_reads import read_aside
from podstatus.alerts.notifiers.http_post import HttpPost, Post, RefusedError
from podstatus.alerts.notifiers.secret_files import bearer
from podstatus.alerts.ports import DeedError, NotReachedError
from podstatus.base.clock import Clock

AGAIN_SECONDS = 60.0
_MOST = 64
"""Alerts in a request. Prometheus has the same number."""
_PATH = "/api/v2/alerts"
_GONE = 410
"""An Alertmanager never says so of alerts: somebody else answers."""


class Alertmanager:
    """Options: `url`, else that of the settings; `tokenFile`, `caFile`."""

    most = _MOST

    def __init__(
        self,
        http: HttpPost,
        *,
        clock: Clock,
        url: str = "",
        link: Callable[[Alert], str] = lambda _: "",
        again_seconds: float = AGAIN_SECONDS,
    ) -> None:
        """`url` where an action has none; `link`: where to look for an alert."""
        self._http = http
        self._clock = clock
        self._url = url
        self._link = link
        self.again_seconds = again_seconds

    async def do_all(self, action: Action, alerts: Sequence[Alert]) -> None:
        """Tell it of these. Raises DeedError."""
        url = action.options.get("url") or self._url
        if not url:
            raise DeedError("no address of an Alertmanager; give the action a url, or set one")
        body = alertmanager_body(
            alerts, now=self._clock.now(), again_seconds=self.again_seconds, link=self._link
        )
        post = Post(
            url=url.rstrip("/") + _PATH,
            body=body,
            headers=await read_aside(bearer, action.options.get("tokenFile", "")),
            ca_file=action.options.get("caFile", ""),
        )
        try:
            await self._http.send(post)
        except RefusedError as error:
            if error.code != _GONE:
                raise
            raise NotReachedError(str(error)) from error
