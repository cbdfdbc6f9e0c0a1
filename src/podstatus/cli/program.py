"""How this program was started, so that the commands that messages suggest work when pasted."""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from podstatus.base.programs import find_program, python_module_command

PROGRAM = python_module_command("podstatus.cli")
"""The command line of this program, for child processes."""
INSTALL_KUBECTL = "install kubectl, see https://kubernetes.io/docs/tasks/tools"
"""The advice for machines without kubectl."""
PROGRAM_VARIABLE = "_PODSTATUS_PROGRAM"
"""Set by the supervisor for the agent: the program as the user typed it."""


_given: dict[str, str] = {}
"""The options of this command that select the agent or the cluster."""


def remember_options(values: Mapping[str, object]) -> None:
    """Remember the options of this command, so that suggested commands find the same agent."""
    for name in ("root_dir", "kubeconfig"):
        if value := values.get(name):
            _given[f"--{name.replace('_', '-')}"] = str(value)


def forget_options() -> None:
    """Forget the options when the command ends."""
    _given.clear()


def suggested_command(words: str) -> str:
    """Return a shell command of this program: `stop` -> `.venv/bin/podstatus stop`.

    It has the `--root-dir` and the `--kubeconfig` of this command.
    """
    options = (f" {name} {shlex.quote(path)}" for name, path in _given.items())
    return f"{typed_program()} {words}{''.join(options)}"


def describe_pod_command(namespace: str, name: str) -> str:
    """Return the command that describes a pod."""
    return _pod_command("describe pod", namespace, name)


def timeline_command(namespace: str, name: str) -> str:
    """Return the command that shows the history of a pod."""
    return _pod_command("timeline", namespace, name)


def _pod_command(command: str, namespace: str, name: str) -> str:
    where = "" if namespace == "default" else f" -n {shlex.quote(namespace)}"
    return suggested_command(f"{command} {shlex.quote(name)}{where}")


def with_root_dir(words: str, folder: Path) -> str:
    """Return a shell command of this program for the node of a root directory."""
    return f"{typed_program()} {words} --root-dir {shlex.quote(short_path(folder))}"


def typed_program() -> str:
    """Return the program as the user typed it; `podstatus` within another one, such as a test."""
    if given := os.environ.get(PROGRAM_VARIABLE):
        return given
    called = Path(sys.argv[0])
    if called.name == "__main__.py" and called.parent == Path(__file__).parent:
        return f"{shlex.quote(sys.executable)} -P -m podstatus.cli"
    if called.name != "podstatus" or _is_on_path(called):
        return "podstatus"
    path = short_path(called)
    return shlex.quote(path if "/" in path else f"./{path}")


def _is_on_path(called: Path) -> bool:
    """True if the shell found it on PATH: it passes the absolute path of such a program."""
    found = find_program("podstatus")
    return found is not None and called.is_absolute() and Path(found) == called


def short_path(path: Path) -> str:
    """Return an absolute path below the current directory relative to it, as a user types it."""
    try:
        current = Path.cwd()
    except OSError:  # it was removed
        return str(path)
    is_below = path.is_relative_to(current) and current != current.parent
    return str(path.relative_to(current)) if is_below else str(path)
