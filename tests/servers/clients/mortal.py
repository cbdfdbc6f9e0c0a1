"""API servers that can be killed and paused, the embedded one and the real one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from podstatus.testing.apiserver import ApiServerProcess
from podstatus.testing.servers.access import ServerAccess
from podstatus.testing.servers.kube_apiserver import KubeApiServer
from tests.support.processes.api_servers import RealServer, Server


class Mortal:
    """A server in a process of its own; its objects outlive it."""

    def __init__(self, process: ApiServerProcess | KubeApiServer, access: ServerAccess) -> None:
        self._process = process
        self.access = access
        self._recover: Callable[[], None] | None = None

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

    def recover(self) -> None:
        """Let it serve, whatever a case that failed has left behind."""
        if self._recover is not None:
            self._recover()


@contextmanager
def mortal(server: Server, folder: Path) -> Iterator[Mortal]:
    """The server of this kind that can be killed: the real one itself, or another process."""
    if isinstance(server, RealServer):
        yield Mortal(server.process, server.access)
        server.client.close()  # its connection may be to one that was killed
    else:
        process = ApiServerProcess(folder)
        yield Mortal(process, process.start())
        process.stop()
