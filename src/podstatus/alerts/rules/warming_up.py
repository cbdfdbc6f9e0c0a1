"""Facts that look back, of an agent that was started too short a while ago to look back.

They are 0 or unknown then, which does not say that something is over: an alert of an earlier life
of the agent goes on until they do say so.
"""

from podstatus.alerts.rules.facts import SYNC_FACTS
from podstatus.alerts.rules.windows import WINDOW_NANOS
from podstatus.observe.status_view import Freshness, NodeSummary, SyncState

POD_WINDOW_FACTS = frozenset(("pod.readyChanges10m", "pod.restarts10m", "pod.foreignWrites10m"))
"""Young until a pod has been watched for as long as they are."""
_SERVER_AGE = "sync.serverAgeSeconds"
_SEND_FACTS = frozenset(fact.name for fact in SYNC_FACTS) - {"sync.serverReachable", _SERVER_AGE}
_FIRST_SYNC_NANOS = 60 * 1_000_000_000
"""Within this all statuses are compared with what the API server has, and sent."""
_FRACTIONS = {
    "cpu": "node.cpuUsedFraction",
    "memory": "node.memoryUsedFraction",
    "disk": "node.diskUsedFraction",
}


def warming_up_node_facts(
    node: NodeSummary, sync: SyncState | None, knowledge: Freshness, watched: int
) -> frozenset[str]:
    """Those of a node that has been watched for so many nanoseconds."""
    young: set[str] = set()
    # Both are known as soon as the API server has answered, however long that takes.
    if node.lease_age_seconds is None:
        young.add("node.leaseAgeSeconds")
    if knowledge.clock_skew_seconds is None:
        young.add("node.clockSkewSeconds")
    if watched < WINDOW_NANOS:
        young.add("node.diskFullInSeconds")
        young.update(name for of, name in _FRACTIONS.items() if of not in node.used_fractions)
        if not knowledge.server_reachable:
            young.add(_SERVER_AGE)
    if sync is not None and watched < (WINDOW_NANOS if sync.unsent else _FIRST_SYNC_NANOS):
        young |= _SEND_FACTS
    return frozenset(young)
