"""What is typed as for kubectl and podstatus does not have: name the command that works."""

import os
import shlex
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

from podstatus.base.programs import find_program
from podstatus.cli.errors import usage_error
from podstatus.cli.program import INSTALL_KUBECTL, suggested_command, with_root_dir

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
    "start": ("a node is started in the foreground", "run"),
    "top": ("there is no metrics API; requests and limits are in the description", "describe node"),
    "up": ("a node is started in the foreground", "run"),
    "version": ("the version is an option", "--version"),
}
"""Those that do not work, with a reason and what helps."""
_EVENTS = ("event", "events", "ev")
_LISTED = frozenset(("pod", "pods", "po", "node", "nodes", "no", *_EVENTS))
"""Types that `get` lists."""
_ROOT_DIR = "--root-dir"
_WITH_VALUE = ("-n", "--namespace", "--kubeconfig", _ROOT_DIR)
_EXEC_WITH_VALUE = ("-n", "--namespace", "-c", "--container", _ROOT_DIR)
_EXEC_FLAGS = ("-i", "-t", "-it", "-ti", "--stdin", "--tty")
_IN_KUBECTL = ("get", "describe", "logs", "exec", "delete")
"""Commands that kubectl has, too, with more options."""


def check_kubectl_habits(words: Sequence[str]) -> None:
    """Exit with the command that works if these are words of kubectl."""
    verb = words[0]
    is_pod = verb == "run" and any(word.split("=")[0] == "--image" for word in words)
    if is_pod:
        usage_error(f"podstatus run starts a node, not a pod; use kubectl: {in_kubectl(words)}")
    if verb in _VERBS:
        usage_error(f"no command {verb}; use kubectl: {in_kubectl(words)}")
    if verb == "restart":
        _refuse_restart(words)
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


def _refuse_restart(words: Sequence[str]) -> NoReturn:
    from podstatus.cli.client.request_errors import RequestError
    from podstatus.cli.client.running_agent import find_root_dir
    from podstatus.cli.start_command import start_command

    root_dir, _ = _without_root_dir(words)
    stop = suggested_command("stop") if root_dir is None else with_root_dir("stop", root_dir)
    try:
        start = start_command(find_root_dir(root_dir, os.environ, stopped=True))
    except RequestError:  # it cannot be read
        start = suggested_command("run")
    usage_error(
        f"no command restart; to restart the agent: {stop}, then: {start}; containers keep running"
    )


def unknown_option_hint(words: Sequence[str], option: str, *, has_similar: bool) -> str:
    """Return what may have been meant by an option that the command does not have.

    `words` begin with the command; `has_similar`: it has an option of a similar name.
    """
    verb = words[0]
    if verb == "exec" and (whole := _with_dashes(words)):
        command = suggested_command(shlex.join(whole))
        return f"options of the command to execute follow --:\n  {command}"
    if verb == "get" and option == "--for":
        return _events_hint(words)
    if verb in _IN_KUBECTL and not has_similar:
        return f"kubectl may have it:\n  {in_kubectl(words)}"
    return ""


def spaced_subject_hint(words: Sequence[str]) -> str:
    """Return the hint for `timeline node NAME`, which `get` takes; empty for other words."""
    from podstatus.cli.options import NODE_KINDS, POD_KINDS

    for index, (kind, name) in enumerate(pairwise(words)):
        if kind.lower() in (*POD_KINDS, *NODE_KINDS) and not name.startswith("-"):
            command = shlex.join([*words[:index], f"{kind}/{name}", *words[index + 2 :]])
            return f"did you mean {kind}/{name}?\n  {suggested_command(command)}"
    return ""


def _with_dashes(words: Sequence[str]) -> list[str]:
    """Return the words of `exec` with -- before the command to execute; empty without one.

    Empty, too, if an option that precedes it is none of `exec`.
    """
    arguments = 0
    remaining = iter(range(1, len(words)))
    for index in remaining:
        word = words[index]
        if word in _EXEC_WITH_VALUE:
            next(remaining, None)
        elif not word.startswith("-"):
            arguments += 1
            if arguments == 2:  # after the pod
                return [*words[:index], "--", *words[index:]]
        elif word not in _EXEC_FLAGS and word.split("=")[0] not in _EXEC_WITH_VALUE:
            return []
    return []


def _events_hint(words: Sequence[str]) -> str:
    """The hint for `get events --for pod/NAME`."""
    about = ""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name == "--for":
            about = value if equals else following
    kind, _, name = about.partition("/")
    rest = [word for word in words if word not in ("get", *_EVENTS)]
    hint = f"kubectl may have it:\n  {in_kubectl(['events', *rest])}"
    if kind not in ("pod", "pods", "po") or not name:
        return hint
    describe = suggested_command(f"describe pod {shlex.quote(name)}")
    return f"for the events of a pod:\n  {describe}\n{hint}"


def in_kubectl(words: Sequence[str]) -> str:
    """Return the words as a kubectl command for the running agent, without `--root-dir`.

    It says how to get kubectl if this machine does not have it.
    """
    from podstatus.cli.client.running_agent import kubectl_command

    root_dir, rest = _without_root_dir(words)
    command = kubectl_command(shlex.join(rest), root_dir, os.environ)
    return command if find_program("kubectl") else f"{command}; first {INSTALL_KUBECTL}"


def _without_root_dir(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    """Split the words into the value of `--root-dir` and the others."""
    root_dir, rest = None, []
    remaining = iter(words)
    for word in remaining:
        name, equals, value = word.partition("=")
        if name == _ROOT_DIR:
            root_dir = Path(value if equals else next(remaining, ""))
        else:
            rest.append(word)
    return root_dir, rest
