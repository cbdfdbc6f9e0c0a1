"""The command that last started the agent of a root directory, for messages that suggest it."""

import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from podstatus.agent.settings.default_root_dir import (
    LOCAL_ROOT_DIR,
    ROOT_DIR_VARIABLE,
    default_root_dir,
)
from podstatus.base.atomic_file import replace_file
from podstatus.base.msgspec_json import decode_json
from podstatus.cli.client.private_dir import START_FILE, is_private
from podstatus.cli.program import short_path, suggested_command, typed_program, with_root_dir

_ROOT_DIR = "--root-dir"
SUPERVISED_FLAGS = ("--no-supervise", "--stop-at-eof")
"""Flags that the supervisor adds to those of the user."""

_ONLY_OF_RUN = ("--use-free-ports",)
"""Flags of `run` that are no settings."""
_CLUSTER_OPTIONS = ("--kubeconfig", "--in-cluster", "--config")
"""Those that can select an external cluster."""


class StartCommand(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent was started."""

    words: tuple[str, ...]
    """The arguments of podstatus, `run` or `observe` first."""
    directory: str
    """The working directory, to which paths in `words` may be relative."""
    make: bool = False
    """`make run` was typed."""


def typed_start(*, make: bool = False) -> StartCommand:
    """Return the start of this process, as the user typed it."""
    words = tuple(word for word in sys.argv[1:] if word not in SUPERVISED_FLAGS)
    return StartCommand(words=words, directory=str(Path.cwd()), make=make)


def record_start(root_dir: Path, start: StartCommand) -> None:
    """Record the start in the root directory, which the caller has locked, if that is possible."""
    with suppress(OSError):
        replace_file(root_dir / START_FILE, msgspec.json.encode(start))


def start_command(root_dir: Path) -> str:
    """Return the shell command that starts the agent of this directory again.

    A directory that another user can write to cannot choose the options.
    """
    start = _recorded_start(root_dir)
    return with_root_dir("run", root_dir) if start is None else format_start(start, root_dir)


def _recorded_start(root_dir: Path) -> StartCommand | None:
    with suppress(OSError, msgspec.DecodeError):
        if is_private(root_dir):
            return decode_json((root_dir / START_FILE).read_bytes(), StartCommand)
    return None


def is_supervised(root_dir: Path) -> bool:
    """Return whether the agent was started with `--supervise`, on the command line."""
    start = _recorded_start(root_dir)
    return start is not None and "--supervise" in start.words


def doctor_command(root_dir: Path) -> str:
    """Return the command that checks the cluster of the recorded start; empty if it names none."""
    start = _recorded_start(root_dir)
    if start is None or start.make:
        return ""
    if not any(word.split("=")[0] in _CLUSTER_OPTIONS for word in start.words):
        return ""
    options = (word for word in start.words[1:] if word not in _ONLY_OF_RUN)
    return format_start(msgspec.structs.replace(start, words=("doctor", *options)), root_dir)


def second_start(first: Path) -> str:
    """Return the form of a command that starts a node beside that of the directory `first`."""
    start = _recorded_start(first)
    is_make = start is not None and start.make and Path(start.directory) == Path.cwd()
    return format_second_start(make=is_make)


def format_second_start(*, make: bool) -> str:
    """Return the form of a command that starts another node; PATH stands for its directory."""
    if make:
        return f"make run {ROOT_DIR_VARIABLE}=PATH"
    return suggested_command("run --root-dir PATH --use-free-ports")


def format_start(start: StartCommand, root_dir: Path) -> str:
    """Return the start as a shell command for the current directory."""
    is_here = Path(start.directory) == Path.cwd()
    if start.make:
        return _make_run(root_dir) if is_here else with_root_dir("run", root_dir)
    words = list(start.words)
    is_named = any(word.split("=")[0] == _ROOT_DIR for word in words)
    # The variable may not be set in the shell of the next start.
    if not is_named and root_dir != default_root_dir(os.environ):
        words += [_ROOT_DIR, str(root_dir)]
    program = typed_program()
    if is_here:
        return f"{program} {shlex.join(words)}"
    [first, *more] = shlex.split(program)
    if "/" in first:
        program = shlex.join([str(Path(first).absolute()), *more])
    return f"cd {shlex.quote(start.directory)} && {program} {shlex.join(words)}"


def _make_run(root_dir: Path) -> str:
    path = short_path(root_dir)
    option = "" if path == LOCAL_ROOT_DIR else f" {ROOT_DIR_VARIABLE}={shlex.quote(path)}"
    return f"make run{option}"
