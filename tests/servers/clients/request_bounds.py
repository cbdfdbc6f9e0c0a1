"""How much a node may ask of its server while things go wrong, from its policy.

See docs/decisions/0016-parallel-sync.md.
"""

from podstatus.status.policy import ParallelSyncOptions
from podstatus.status.sync.state.circuit_breaker import PROBE_FRACTION

_FIRST_LOOK, _LONGEST_LOOK = 0.5, 5.0
"""Seconds between two rounds in which a server is looked for, before chance shortens them."""
_CHANCE = 0.5
"""The part of a wait that chance leaves at least."""


def tries(seconds: float, sending: ParallelSyncOptions) -> int:
    """How often a pod is tried that fails each time, at most."""
    return _times(seconds, sending.initial_retry_seconds, sending.max_retry_seconds)


def most_without_server(seconds: float, sending: ParallelSyncOptions) -> int:
    """How often a server is asked that does not answer, at most, about all pods together.

    Those that are under way; the pods that open the circuit, and once more what was under way
    with them, should an answer from before have closed it again; and then a few in each round.
    """
    rounds = _times(seconds, _FIRST_LOOK, _LONGEST_LOOK)
    return (
        2 * sending.in_flight
        + sending.circuit_after
        + rounds * (sending.in_flight // PROBE_FRACTION)
    )


def _times(seconds: float, first: float, most: float) -> int:
    """How many moments there are, the first at once, with waits that double in between."""
    count, at, wait = 0, 0.0, first
    while at <= seconds:
        count += 1
        at += wait * _CHANCE
        wait = min(2 * wait, most)
    return count
