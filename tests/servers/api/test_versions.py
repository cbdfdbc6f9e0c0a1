"""Which server it is."""

from tests.support.processes.api_servers import Server


def test_the_server_tells_its_version(server: Server) -> None:
    code, told = server.client.get("/version")
    assert code == 200
    assert told["gitVersion"].startswith("v1.36.4")
    assert (told["major"], told["minor"]) == ("1", "36")
