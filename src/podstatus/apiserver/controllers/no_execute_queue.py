"""Which nodes get or lose a taint NoExecute in a pass of the node monitor.

No I/O: the monitor writes the taints.

Upstream: processTaintBaseEviction and doNoExecuteTaintingPass, pkg/controller/nodelifecycle/
node_lifecycle_controller.go v1.36.4.
"""

from collections import defaultdict
from collections.abc import Mapping

from podstatus.apiserver.controllers.decide.monitored_node import MonitoredNode
from podstatus.apiserver.controllers.decide.node_health import TRUE
from podstatus.apiserver.controllers.decide.node_taints import no_execute_key
from podstatus.apiserver.controllers.decide.policy import NodeMonitorPolicy
from podstatus.apiserver.controllers.decide.zones import (
    ClusterTransition,
    ZoneLimiter,
    ZoneName,
    ZoneState,
    decide_disruption,
)


class NoExecuteQueue:
    """The nodes of each zone that wait for a taint, and how fast they may get it."""

    def __init__(self, policy: NodeMonitorPolicy) -> None:
        self._policy = policy
        self._waiting: dict[ZoneName, dict[str, None]] = defaultdict(dict)
        self._limiters: dict[ZoneName, ZoneLimiter] = defaultdict(
            lambda: ZoneLimiter.at_rate(policy.node_eviction_rate)
        )
        self._states: dict[ZoneName, ZoneState] = {}

    def follow(self, name: str, node: MonitoredNode) -> str | None:
        """Return the key of the taint to write at once, empty to remove it; None for neither.

        A taint that replaces another is written at once; a node without one has to wait.
        """
        key = no_execute_key(node.ready_status)
        if key and not node.no_execute:
            self._waiting[node.zone].setdefault(name)
            return None
        self._waiting[node.zone].pop(name, None)
        return None if node.no_execute == ({key} if key else frozenset()) else key

    def update_zones(self, nodes: Mapping[str, MonitoredNode], now: int) -> ClusterTransition:
        """Adapt the rates to the health of the zones; return what became of the cluster."""
        ready: dict[ZoneName, list[bool]] = defaultdict(list)
        for node in nodes.values():
            if node.is_counted:
                ready[node.zone].append(node.ready_status == TRUE)
        disruption = decide_disruption(self._states, ready, self._policy)
        self._states = disruption.states
        self._forget_zones({node.zone for node in nodes.values()})
        for zone, rate in disruption.rates.items():
            self._limiters[zone] = self._limiters[zone].with_rate(rate, now)
        return disruption.transition

    def pop_allowed(self, nodes: Mapping[str, MonitoredNode], now: int) -> dict[str, str]:
        """Return the nodes that get a taint now, with its key, in the order in which they waited.

        Those that are Ready again, or gone, are dropped.
        """
        allowed: dict[str, str] = {}
        for zone, waiting in self._waiting.items():
            for name in list(waiting):
                key = no_execute_key(nodes[name].ready_status) if name in nodes else ""
                if key:
                    self._limiters[zone], may_taint = self._limiters[zone].try_acquire(now)
                    if not may_taint:
                        break
                    allowed[name] = key
                del waiting[name]
        return allowed

    def _forget_zones(self, zones: set[ZoneName]) -> None:
        for zone in set(self._limiters) - zones:
            del self._limiters[zone]
        for zone in set(self._waiting) - zones:
            del self._waiting[zone]
