"""API servers that can be killed and paused, the embedded one and the real one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from podstatus.testing.apiserver import ApiAccess, ApiServerProcess
from podstatus.testing.servers.access import ServerAccess
from podstatus.testing.servers.kube_apiserver import KubeApiServer
from tests.support.processes.api_servers import NODES, Server


class Mortal:
    """A server in a process of its own; its objects outlive it."""

    def __init__(self, process: ApiServerProcess | KubeApiServer) -> None:
        self._process = process
        self.access = process.start()
        self._recover: Callable[[], None] | None = None

    def node_access(self, node: str) -> ServerAccess:
        """As the agent of one of the nodes has it."""
        if isinstance(self._process, KubeApiServer):
            return self._process.node_access(node)
        return self.access

    def kill(self) -> None:
        """End it without a chance to say goodbye."""
        self._process.kill()
        self._recover = self.start

    def start(self) -> None:
        """Serve again, at the same port."""
        self._process.start()
        self._recover = None

    def pause(self) -> None:
        """Let it stand still."""
        self._process.pause()
        self._recover = self.resume

    def resume(self) -> None:
        """Let it go on."""
        self._process.resume()
        self._recover = None

    def forget(self) -> None:
        """Let it forget all changes, so that no watch can go on from where it was."""
        if isinstance(self._process, KubeApiServer):
            self._process.compact()
        else:
            access = ApiAccess(self._process.folder)
            access.inject({"verb": "get", "action": "compact", "times": 1})
            access.request("GET", "/api/v1/namespaces/default")
        # The cache of the real one remembers what its etcd has forgotten.
        self.kill()
        self.start()

    def recover(self) -> None:
        """Let it serve, whatever a case that failed has left behind."""
        if self._recover is not None:
            self._recover()


@contextmanager
def mortal(server: Server, folder: Path) -> Iterator[Mortal]:
    """Another server of this kind, which can be killed."""
    process: ApiServerProcess | KubeApiServer
    process = KubeApiServer(folder, nodes=NODES) if server.is_real else ApiServerProcess(folder)
    try:
        yield Mortal(process)
    finally:
        process.stop()
