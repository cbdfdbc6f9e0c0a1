"""The Node gets the agent's port once the agent listens."""

import asyncio

from podstatus.node.compose import build_node
from podstatus.node.settings import NodeSettings
from podstatus.testing.clock import FakeClock
from podstatus.testing.node_api import InMemoryNodeApi
from tests.node.scene import INFO, FakeEvents, FakeHealth


def test_the_node_shows_the_port_as_soon_as_there_is_one() -> None:
    ports = [0, 10250, 4711]

    async def run() -> list[int]:
        services = build_node(
            NodeSettings(name="n", node_ips=("10.0.0.7",)),
            api=InMemoryNodeApi(),
            info=INFO,
            usage=lambda: None,
            health=FakeHealth(),
            events=FakeEvents(),
            clock=FakeClock(),
            port=lambda: ports[0],
        )
        shown = []
        while ports:
            services.refresh_draft()
            node = services.node_cache.current()
            shown.append(node.status.daemon_endpoints.kubelet_endpoint.port)
            ports.pop(0)
        return shown

    assert asyncio.run(run()) == [0, 10250, 4711]
