"""What all active pods hold of the node, kept as a sum: who asks about one pod weighs one pod.

A node is handed all its pods at once when it starts. To add up all others for each of them takes
minutes with some thousand pods, and nothing else happens meanwhile.
"""

from collections import Counter

from podstatus.kube.objects.pod import PodUID
from podstatus.workers.admission.host_ports import HostPort
from podstatus.workers.admission.resource_fit import Taken, taken_by
from podstatus.workers.allocation.allocations import Grants
from podstatus.workers.lifecycle.pod_registry import Lives

_NOTHING = Taken()


class Occupancy:
    """The sum, of which only pods that changed are weighed again. For one event loop."""

    def __init__(self, lives: Lives, grants: Grants) -> None:
        self._lives = lives
        self._grants = grants
        self._held: dict[PodUID, Taken] = {}
        self._amounts: Counter[str] = Counter()
        self._ports: Counter[HostPort] = Counter()
        self._changed = {life.uid for life in lives.all()}
        lives.add_listener(self._changed.add)
        grants.add_listener(self._changed.add)

    def beside(self, uid: PodUID) -> Taken:
        """What the other active pods hold: their grants, and what they have not given back."""
        self._catch_up()
        own = self._held.get(uid, _NOTHING)
        own_ports = Counter(own.ports)
        return Taken(
            pods=len(self._held) - own.pods,
            amounts={name: n - own.amounts.get(name, 0) for name, n in self._amounts.items()},
            ports=tuple(port for port, n in self._ports.items() if n > own_ports[port]),
        )

    def _catch_up(self) -> None:
        for uid in tuple(self._changed):
            pod = self._lives.active_pod(uid)
            held = None if pod is None else taken_by([self._grants.held(pod).spec])
            self._replace(uid, held)
            self._changed.discard(uid)

    def _replace(self, uid: PodUID, held: Taken | None) -> None:
        before = self._held.pop(uid, _NOTHING)
        self._amounts.subtract(before.amounts)
        self._ports.subtract(before.ports)
        if held is not None:
            self._held[uid] = held
            self._amounts.update(held.amounts)
            self._ports.update(held.ports)
        for port in before.ports:
            if not self._ports[port]:
                del self._ports[port]
