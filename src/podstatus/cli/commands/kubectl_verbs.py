"""What is typed as for kubectl and podstatus does not have: name the command that works."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from podstatus.base.programs import find_program
from podstatus.cli.errors import usage_error
from podstatus.cli.program import INSTALL_KUBECTL, suggested_command

_VERBS = frozenset(
    (
        "annotate",
        "api-resources",
        "apply",
        "attach",
        "config",
        "cordon",
        "cp",
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
"""Commands of kubectl that work with the embedded API server."""
_INSTEAD = {
    "help": ("help is an option", "--help"),
    "port-forward": ("containers listen at the IP of their pod", "get pods -o wide"),
    "ps": ("containers belong to pods", "get pods -A"),
    "restart": ("the containers keep running when the agent is stopped", "stop"),
    "start": ("a node is started in the foreground", "run"),
    "top": ("there is no metrics API; requests and limits are in the description", "describe node"),
    "up": ("a node is started in the foreground", "run"),
    "version": ("the version is an option", "--version"),
}
"""Those that do not work, with a reason and what helps."""
_LISTED = frozenset(("pod", "pods", "po", "node", "nodes", "no", "event", "events", "ev"))
"""Types that `get` lists."""
_ROOT_DIR = "--root-dir"
_WITH_VALUE = ("-n", "--namespace", "--kubeconfig", _ROOT_DIR)


def check_kubectl_habits(words: Sequence[str]) -> None:
    """Exit with the command that works if these are words of kubectl."""
    verb = words[0]
    is_pod = verb == "run" and any(word.split("=")[0] == "--image" for word in words)
    if is_pod:
        usage_error(f"podstatus run starts a node, not a pod; use kubectl: {in_kubectl(words)}")
    if verb in _VERBS:
        usage_error(f"no command {verb}; use kubectl: {in_kubectl(words)}")
    if verb in _INSTEAD:
        reason, instead = _INSTEAD[verb]
        usage_error(f"no command {verb}; {reason}: {suggested_command(instead)}")
    if verb in _LISTED:
        usage_error(f"no command {verb}; to list them: {suggested_command(f'get {verb}')}")
    if verb.split("=")[0] in _WITH_VALUE:
        _refuse_leading_option(words)


def _refuse_leading_option(words: Sequence[str]) -> NoReturn:
    count = 1 if "=" in words[0] else 2
    example = shlex.join([*(words[count:] or ["get", "pods"]), *words[:count]])
    usage_error(f"options follow the command: {suggested_command(example)}")


def in_kubectl(words: Sequence[str]) -> str:
    """Return the words as a kubectl command for the running agent, without `--root-dir`.

    It says how to get kubectl if this machine does not have it.
    """
    from podstatus.cli.client.running_agent import kubectl_command

    root_dir, rest = None, []
    remaining = iter(words)
    for word in remaining:
        name, equals, value = word.partition("=")
        if name == _ROOT_DIR:
            root_dir = Path(value if equals else next(remaining, ""))
        else:
            rest.append(word)
    command = kubectl_command(shlex.join(rest), root_dir, os.environ)
    return command if find_program("kubectl") else f"{command}; first {INSTALL_KUBECTL}"
