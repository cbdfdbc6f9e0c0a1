"""For cases that are true of both servers, each in a namespace of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.streams.node_scene import NodeScene
from tests.support.processes.api_servers import Server, own_real_server
from tests.support.processes.stand_in_node import running_node


@pytest.fixture
def server(request: pytest.FixtureRequest, each_server: Server, tmp_path: Path) -> Iterator[Server]:
    """Each of the servers that were chosen."""
    if each_server.is_real and request.node.get_closest_marker("own_server"):
        with own_real_server(tmp_path / "real") as own:
            yield own
    else:
        yield each_server


@pytest.fixture
def namespace(server: Server) -> str:
    """A new one on the server."""
    return server.new_namespace()


@pytest.fixture
def scene(server: Server, namespace: str, node_certificates: Path) -> Iterator[NodeScene]:
    """A node that is only a port, with its pods."""
    with running_node(node_certificates, server.access.authority) as thread:
        yield NodeScene(server, namespace, thread)
