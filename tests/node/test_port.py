"""The Node gets the agent's port once the agent listens."""

from podstatus.kube.objects.node import Node
from podstatus.node.compose import NodeCallbacks, build_node
from podstatus.node.facts_collector import FactSources
from podstatus.node.node_cache import NodeCache
from podstatus.node.settings import NodeSettings
from podstatus.testing.clock import FakeClock
from tests.node.scene import INFO, FakeEvents
from tests.support.in_memory_node_api import InMemoryNodeApi
from tests.support.pod_services import ignore


async def test_the_node_shows_the_port_as_soon_as_there_is_one() -> None:
    ports = [0, 10250, 4711]

    async def run() -> list[int]:
        node_cache = NodeCache(Node())
        services = build_node(
            NodeSettings(name="n", node_ips=("10.0.0.7",)),
            FactSources(
                info=INFO,
                usage=lambda: None,
                problems=tuple,
                port=lambda: ports[0],
                alert_conditions=tuple,
            ),
            api=InMemoryNodeApi(),
            events=FakeEvents(),
            clock=FakeClock(),
            node_cache=node_cache,
            callbacks=NodeCallbacks(ignore, ignore, ignore),
        )
        shown = []
        while ports:
            services.refresh_draft()
            node = node_cache.current()
            shown.append(node.status.daemon_endpoints.kubelet_endpoint.port)
            ports.pop(0)
        return shown

    assert await run() == [0, 10250, 4711]
