"""Errors of CRI calls, classed by what the caller does about them.

    RuntimeDownError (runtime.port)   no answer, or none in time: nothing is known; try again later
    CriCallError                      the runtime answered that this call failed

Upstream: the kubelet compares gRPC codes where it calls, kuberuntime v1.36.4.
"""

from typing import Final

from podstatus.kube.scalars.duration import format_duration
from podstatus.runtime.port import RuntimeDownError

NOT_FOUND: Final = "NOT_FOUND"
_NO_SERVICE: Final = "unknown service"


class CriCallError(Exception):
    """The runtime answered with an error; the message is its own."""

    def __init__(self, method: str, code: str, message: str) -> None:
        super().__init__(f"{method}: {message}")
        self.code = code
        """Name of the gRPC status code: NOT_FOUND, UNKNOWN, …"""
        self.message = message

    @property
    def is_not_found(self) -> bool:
        """Whether the sandbox, container or image does not exist."""
        return self.code == NOT_FOUND


def call_error(
    endpoint: str, method: str, code: str, message: str, *, seconds: float
) -> CriCallError | RuntimeDownError:
    """Return the error for the status of a call that had `seconds` to complete."""
    if code == "DEADLINE_EXCEEDED":
        return RuntimeDownError(
            f"the container runtime at {endpoint} has not answered {method} within "
            f"{format_duration(seconds)}; if it hangs, restart it: containers keep running"
        )
    if code == "UNAVAILABLE":
        return RuntimeDownError(
            f"cannot reach the container runtime at {endpoint}: {message}; start it, or set "
            "--container-runtime-endpoint to its socket"
        )
    if code == "UNIMPLEMENTED" and _NO_SERVICE in message:
        return RuntimeDownError(
            f"the server at {endpoint} does not serve CRI v1: {message}; in containerd's "
            "config.toml, remove cri from disabled_plugins"
        )
    return CriCallError(method, code, message)
