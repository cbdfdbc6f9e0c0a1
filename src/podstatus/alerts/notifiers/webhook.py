"""The action `webhook`: a signed POST of the alert as JSON, when it fires and when it resolves."""

from collections.abc import Callable

from podstatus.alerts.model import Action, Alert
from podstatus.alerts.notifiers.http_post import HttpPostClient, PostRequest
from podstatus.alerts.notifiers.messages.webhook_message import (
    UnusableSecretError,
    message_id,
    webhook_body,
    webhook_headers,
)
from podstatus.alerts.notifiers.secret_files import bearer_header, read_secret, read_with_timeout
from podstatus.alerts.ports import ActionError, NotSentError
from podstatus.alerts.rules.durations import RuleDurationError, parse_duration
from podstatus.base.clock import Clock

_TIMEOUT = "10s"
_SECOND = 1_000_000_000


class WebhookNotifier:
    """Sends alerts as webhooks. Options: `url`, `secretFile`, `tokenFile`, `caFile`, `timeout`."""

    def __init__(self, http: HttpPostClient, *, clock: Clock, link: Callable[[Alert], str]) -> None:
        """`link` returns the URL of an alert."""
        self._http = http
        self._clock = clock
        self._link = link

    async def send(self, action: Action, alert: Alert) -> None:
        options = action.options
        if not options.get("url"):
            raise ActionError("the webhook has no url; set it in the action")
        body = webhook_body(alert, self._link(alert))
        headers = await self._headers(options.get("secretFile", ""), message_id(alert), body)
        headers |= await read_with_timeout(bearer_header, options.get("tokenFile", ""))
        await self._http.send(
            PostRequest(
                url=options["url"],
                body=body,
                headers=headers,
                ca_file=options.get("caFile", ""),
                timeout_seconds=_seconds(options.get("timeout", "")),
            )
        )

    async def _headers(self, secret_file: str, id_: str, body: bytes) -> dict[str, str]:
        secret = await read_with_timeout(read_secret, secret_file) if secret_file else None
        try:
            return webhook_headers(id_, self._clock.now() // _SECOND, body, secret)
        except UnusableSecretError as error:
            raise NotSentError(f"{secret_file} does not contain a secret: {error}") from error


def _seconds(timeout: str) -> float:
    try:
        return parse_duration(timeout or _TIMEOUT)
    except RuleDurationError as error:
        raise ActionError(f"timeout: {error}") from error
