"""The ports that a node or an observer listens on, and whether it can."""

import errno
import socket

import msgspec

from podstatus.agent.settings.model import AgentSettings


class ListenPort(msgspec.Struct, frozen=True, kw_only=True):
    """An address of the agent or of its API server; port 0 is any free one."""

    setting: str
    """The name of the setting of the port."""
    host: str
    port: int

    @property
    def flag(self) -> str:
        return self.setting.replace("_", "-")

    def is_in_use(self) -> bool:
        """True if another process listens there."""
        error = self.error()
        return error is not None and error.errno == errno.EADDRINUSE

    def error(self) -> OSError | None:
        """Try to listen, and return why it fails."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            socket.create_server((self.host, self.port), family=family).close()
        except OSError as error:
            return error
        return None


def node_ports(settings: AgentSettings) -> list[ListenPort]:
    """Return all ports of a node with these settings."""
    ports = [observer_port(settings)]
    if settings.healthz_port is not None:
        host = settings.healthz_bind_address
        ports.append(ListenPort(setting="healthz_port", host=host, port=settings.healthz_port))
    if settings.embedded:
        port = settings.apiserver_port
        ports.append(ListenPort(setting="apiserver_port", host="127.0.0.1", port=port))
    return ports


def observer_port(settings: AgentSettings) -> ListenPort:
    """Return the only port of an observer."""
    return ListenPort(setting="port", host=settings.address, port=settings.port)
