"""What is said about running containers, as far as it decides whether they are stopped."""

from collections.abc import Mapping

import msgspec


class Verdicts(msgspec.Struct, frozen=True, kw_only=True):
    """The latest word of liveness and startup probes and of others, by container ID.

    True is a success and False a failure for good: the failures reached the probe's threshold.
    A probe that is still trying has no entry.
    """

    liveness: Mapping[str, bool] = {}
    startup: Mapping[str, bool] = {}
    unwanted: frozenset[str] = frozenset()
    """Those that somebody wants to be started again, though no probe says so."""
