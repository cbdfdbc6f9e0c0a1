"""How a container is told that it cannot be started as its spec says."""

from podstatus.kube.scalars.go_text import go_quoted
from podstatus.runtime.port import CannotStartError

CONFIG_ERROR = "CreateContainerConfigError"


def config_error(message: str) -> CannotStartError:
    """The error for a spec that cannot be followed."""
    return CannotStartError(CONFIG_ERROR, message)


def unsupported_field(field: str, value: object, reason: str) -> CannotStartError:
    """The error for a field that this runtime cannot honour, and so does not ignore."""
    shown = go_quoted(value) if isinstance(value, str) else _as_json(value)
    return config_error(f"{field}: {shown} cannot be honoured: {reason}")


def _as_json(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + " ".join(str(item) for item in value) + "]"
    return str(value)
