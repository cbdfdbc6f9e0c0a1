"""Connection limits of the agent's ports, and the logger of their HTTP servers.

The limits are for a soft limit of 1024 file descriptors; the ports take at most half of them. The
rest is for API server watches, pods and their logs, exec sessions and files.
"""

import logging

from podstatus.base.log_rate import RateLimitFilter
from podstatus.base.net.connection_eviction import StageLimits
from podstatus.base.system_clock import SystemClock

NODE_PORT_LIMITS = StageLimits(
    silent=48, handshake=96, head=48, unauthenticated=64, authenticated=200
)
"""`authenticated` covers the maximum number of streams (100) and of watches (100)."""
HEALTH_PORT_LIMITS = StageLimits(silent=24, head=16, unauthenticated=16)


def http_logger(name: str) -> logging.Logger:
    """A rate-limited logger for aiohttp that drops request content: it may contain a token."""
    logger = logging.getLogger(f"{name}.http")
    if not logger.filters:
        logger.addFilter(RateLimitFilter(SystemClock()))
    return logger
