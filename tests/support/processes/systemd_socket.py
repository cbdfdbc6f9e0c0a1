"""The socket of systemd's service manager, which services notify."""

import socket
from pathlib import Path
from typing import Self

SECONDS = 120.0


class SystemdSocket:
    """Receives the messages of a service, one line each."""

    def __init__(self, path: Path, *, abstract: bool = False) -> None:
        self.address = f"@{path}" if abstract else str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{path}" if abstract else str(path))
        self._socket.settimeout(SECONDS)
        self.lines: list[str] = []

    def variables(self, watchdog_seconds: float = 0, pid: int = 0) -> dict[str, str]:
        """What systemd sets for the service."""
        found = {"NOTIFY_SOCKET": self.address}
        if watchdog_seconds:
            found["WATCHDOG_USEC"] = str(round(watchdog_seconds * 1e6))
        return found | ({"WATCHDOG_PID": str(pid)} if pid else {})

    def receive(self) -> list[str]:
        """The lines of the next message."""
        lines = self._socket.recv(65536).decode().split("\n")
        self.lines += lines
        return lines

    def receive_until(self, begin: str) -> str:
        """The next line with this beginning."""
        while True:
            for line in self.receive():
                if line.startswith(begin):
                    return line

    def receive_waiting(self) -> list[str]:
        """All lines that have arrived."""
        self._socket.setblocking(False)
        found: list[str] = []
        try:
            while True:
                found += self.receive()
        except BlockingIOError:
            return found
        finally:
            self._socket.settimeout(SECONDS)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
