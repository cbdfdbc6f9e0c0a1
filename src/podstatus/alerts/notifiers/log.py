"""The action `log`: a line in the log of the agent."""

import logging

from podstatus.alerts.model import Action, Alert
from podstatus.kube.scalars.time import Time

logger = logging.getLogger(__name__)

_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "critical": logging.ERROR}
_KEYS = "rule=%s severity=%s subject=%s since=%s id=%s summary=%s"


class LogNotifier:
    """Has no options."""

    async def send(self, action: Action, alert: Alert) -> None:  # noqa: ARG002
        """Write the line."""
        if alert.state == "firing":
            level, told = _LEVELS[alert.severity], f"alert fires: {_KEYS}"
        else:
            level, told = logging.INFO, f"alert resolved: {_KEYS}"
        subject, said = alert.subject, alert.annotations
        logger.log(
            level,
            told,
            alert.rule,
            alert.severity,
            f"{subject.scope} {'/'.join(filter(None, (subject.namespace, subject.name)))}",
            Time.from_unix_nanos(alert.since),
            alert.id,
            said.get("summary") or said.get("description", ""),
        )
