"""For cases that are true of both servers, each in a namespace of its own."""

import pytest

from tests.api_servers import Server


@pytest.fixture
def server(each_server: Server) -> Server:
    """Each of the servers that were chosen."""
    return each_server


@pytest.fixture
def namespace(server: Server) -> str:
    """A new one on the server."""
    return server.new_namespace()
