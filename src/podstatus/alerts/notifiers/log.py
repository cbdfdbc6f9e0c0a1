"""The action `log`: writes a line to the log of the agent."""

import logging

from podstatus.alerts.model import Action, Alert
from podstatus.kube.scalars.time import Time

logger = logging.getLogger(__name__)

_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "critical": logging.ERROR}
_KEYS = "rule=%s severity=%s subject=%s since=%s id=%s summary=%s"


class LogNotifier:
    """Logs alerts. Has no options."""

    async def send(self, action: Action, alert: Alert) -> None:  # noqa: ARG002
        """Log the alert: at a level by its severity while it fires, at info once it resolved."""
        if alert.state == "firing":
            level, message = _LEVELS[alert.severity], f"alert firing: {_KEYS}"
        else:
            level, message = logging.INFO, f"alert resolved: {_KEYS}"
        subject, annotations = alert.subject, alert.annotations
        logger.log(
            level,
            message,
            alert.rule,
            alert.severity,
            f"{subject.scope} {subject.full_name}",
            Time.from_unix_nanos(alert.since),
            alert.id,
            annotations.get("summary") or annotations.get("description", ""),
        )
