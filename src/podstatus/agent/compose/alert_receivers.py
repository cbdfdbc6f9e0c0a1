"""Build the receivers of alerts that a node agent and an observer share, and their database."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from podstatus.agent.settings.model import AgentSettings
from podstatus.alerts.delivery.store import AlertStore, AlertStoreError
from podstatus.alerts.model import Alert
from podstatus.alerts.notifiers.alertmanager import AlertmanagerNotifier
from podstatus.alerts.notifiers.http_post import HttpPostClient
from podstatus.alerts.notifiers.log import LogNotifier
from podstatus.alerts.notifiers.webhook import WebhookNotifier
from podstatus.alerts.ports import AlertNotifier, BatchAlertNotifier
from podstatus.base.clock import Clock

logger = logging.getLogger(__name__)

ALERTS_FILE = "alerts.db"
"""File name in the root directory."""


class AlertReceivers:
    """Notifiers that change nothing in the cluster, and the alert database."""

    def __init__(
        self, settings: AgentSettings, folder: Path, clock: Clock, *, url: Callable[[], str]
    ) -> None:
        """`url` returns the URL of this process, empty before it listens."""
        self._base_url = url
        self._http = http = HttpPostClient(clock=clock)
        self.store = _open_store(folder / ALERTS_FILE)
        """None if the database is not usable."""
        self.notifiers: Mapping[str, AlertNotifier | BatchAlertNotifier] = {
            "log": LogNotifier(),
            "webhook": WebhookNotifier(http, clock=clock, link=self._alert_url),
            "alertmanager": AlertmanagerNotifier(
                http, clock=clock, url=settings.alertmanager_url or "", link=self._alert_url
            ),
        }
        """By action kind."""

    async def close(self) -> None:
        """Close all connections and the alert database."""
        await self._http.close()
        if self.store is not None:
            try:
                self.store.close()
            except AlertStoreError as error:
                logger.warning("cannot close the alert database: error=%s", error)

    def _alert_url(self, alert: Alert) -> str:
        """The alert's URL in the query API; empty before this process listens."""
        url = self._base_url()
        return f"{url}/v1/alerts?rule={alert.rule}" if url else ""


def _open_store(path: Path) -> AlertStore | None:
    """The alert database; None if it is not usable: alerts are lost at a restart then."""
    try:
        return AlertStore.open(path)
    except AlertStoreError as error:
        logger.error("alerts will not survive a restart: error=%s", error)
        return None
