"""Facts over a time window that are not complete yet, because the agent started recently.

Until then they are 0 or unknown, which does not show that a problem is over: a restored alert stays
active until they are complete.
"""

from podstatus.alerts.rules.fact_variables import SYNC_FACTS
from podstatus.alerts.rules.windows import WINDOW_NANOS
from podstatus.observe.ports import Freshness, NodeSummary, SyncState

POD_WINDOW_FACTS = frozenset(("pod.readyChanges10m", "pod.restarts10m", "pod.foreignWrites10m"))
"""Incomplete until a pod has been watched for the length of the window."""
_SERVER_AGE = "sync.serverAgeSeconds"
_SEND_FACTS = frozenset(fact.name for fact in SYNC_FACTS) - {"sync.serverReachable", _SERVER_AGE}
_FIRST_SYNC_NANOS = 60 * 1_000_000_000
"""By then every status has been compared with the API server's copy, and sent."""
_FRACTIONS = {
    "cpu": "node.cpuUsedFraction",
    "memory": "node.memoryUsedFraction",
    "disk": "node.diskUsedFraction",
}


def warming_up_node_facts(
    node: NodeSummary, sync: SyncState | None, knowledge: Freshness, watched: int
) -> frozenset[str]:
    """Return the incomplete facts of a node that has been watched for `watched` nanoseconds."""
    warming_up: set[str] = set()
    # Known as soon as the API server has answered, however long that takes.
    if node.lease_age_seconds is None:
        warming_up.add("node.leaseAgeSeconds")
    if knowledge.clock_skew_seconds is None:
        warming_up.add("node.clockSkewSeconds")
    if watched < WINDOW_NANOS:
        warming_up.add("node.diskFullInSeconds")
        warming_up.update(name for of, name in _FRACTIONS.items() if of not in node.used_fractions)
        if not knowledge.server_reachable:
            warming_up.add(_SERVER_AGE)
    if sync is not None and watched < (WINDOW_NANOS if sync.unsent else _FIRST_SYNC_NANOS):
        warming_up |= _SEND_FACTS
    return frozenset(warming_up)
