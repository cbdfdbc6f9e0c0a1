"""Errors for containers that cannot be started as their spec says."""

from podstatus.kube.scalars.go_text import go_quoted
from podstatus.runtime.port import CannotStartError

CONFIG_ERROR = "CreateContainerConfigError"


def config_error(message: str) -> CannotStartError:
    """Return the error for an invalid or unsatisfiable spec."""
    return CannotStartError(CONFIG_ERROR, message)


def unavailable_reference(message: str) -> CannotStartError:
    """Return the error for an object that the API server does not show, or not permit to read.

    Both may be so for a moment: the Node authorizer permits an object once it has seen the pod's
    binding, and objects may be created after their pods.
    """
    return CannotStartError(CONFIG_ERROR, message, retry_soon=True)


def unsupported_field(field: str, value: object, reason: str) -> CannotStartError:
    """Return the error for a field that this runtime does not support, and so must not ignore."""
    text = go_quoted(value) if isinstance(value, str) else _as_json(value)
    return config_error(f"{field}: {text} is not supported: {reason}")


def _as_json(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + " ".join(str(item) for item in value) + "]"
    return str(value)
