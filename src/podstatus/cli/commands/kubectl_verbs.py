"""Commands of kubectl that podstatus does not have: name the kubectl command that works."""

import os
import shlex
from collections.abc import Sequence

from podstatus.cli.errors import usage_error

KUBECTL_VERBS = frozenset(
    (
        "annotate",
        "api-resources",
        "apply",
        "cordon",
        "create",
        "diff",
        "edit",
        "label",
        "patch",
        "replace",
        "taint",
        "uncordon",
        "wait",
    )
)
"""Those that work with the embedded API server."""


def is_kubectl_run(words: Sequence[str]) -> bool:
    """True for `run NAME --image IMAGE`, which creates a pod in kubectl."""
    return words[0] == "run" and any(word.split("=")[0] == "--image" for word in words)


def refer_to_kubectl(words: Sequence[str]) -> None:
    """Exit with the kubectl command for the running agent."""
    from podstatus.cli.client.running_agent import kubectl_command

    verb = words[0]
    missing = "podstatus run starts a node, not a pod" if verb == "run" else f"no command {verb}"
    usage_error(f"{missing}; use kubectl: {kubectl_command(shlex.join(words), None, os.environ)}")
