"""How many connections the ports of an agent take, and what their servers log of bad requests.

The limits are those for 1024 descriptors, of which the agent has the other half for its own work:
watches of the API server, pods and their logs, commands in containers, files.
"""

import logging

from podstatus.base.log_rate import RateLimitFilter
from podstatus.base.net.connection_table import StageLimits

NODE_PORT_LIMITS = StageLimits(
    silent=48, handshake=96, head=48, unauthenticated=64, authenticated=200
)
"""Known clients have room for all streams (100) and watches (100) that are allowed at once."""
HEALTH_PORT_LIMITS = StageLimits(silent=24, head=16, unauthenticated=16)


def http_logger(name: str) -> logging.Logger:
    """A logger for aiohttp, which logs what could not be parsed: there may be a token in it."""
    logger = logging.getLogger(f"{name}.http")
    if not logger.filters:
        logger.addFilter(RateLimitFilter())
    return logger
