"""Executes a program, resolved as in a container, with error messages that kubectl users know.

Upstream: Go's exec.LookPath, which runc uses.
"""

import errno
import json
import os
import stat

from .request import ExecError


def execute(argv: list[str], env: dict[str, str], cwd: str) -> None:
    """Replace this process by the program. Raises ExecError."""
    if any("\0" in argument for argument in argv):
        raise ExecError(f"exec: {json.dumps(argv[0])}: invalid argument")
    try:
        os.chdir(cwd)
    except OSError as error:
        raise ExecError(f'chdir "{cwd}": {_describe_error(error)}') from error
    program = _find_program(argv[0], env.get("PATH", ""))
    try:
        os.execve(program, argv, env)  # noqa: S606 - deliberately no shell
    except (OSError, ValueError) as error:
        reason = _describe_error(error) if isinstance(error, OSError) else str(error)
        raise ExecError(f"exec {program}: {reason}") from error


def _find_program(name: str, path: str) -> str:
    if "/" in name:
        try:
            reason = _not_executable_reason(name)
        except OSError as error:
            raise ExecError(f'exec: "{name}": stat {name}: {_describe_error(error)}') from error
        if reason:
            raise ExecError(f'exec: "{name}": {reason}')
        return name
    for folder in filter(None, path.split(":")):
        candidate = f"{folder}/{name}"
        try:
            if not _not_executable_reason(candidate):
                return candidate
        except OSError:
            continue
    raise ExecError(f'exec: "{name}": executable file not found in $PATH')


def _not_executable_reason(path: str) -> str:
    mode = os.stat(path).st_mode  # noqa: PTH116 - loads as few modules as possible
    if stat.S_ISDIR(mode):
        return "is a directory"
    return "" if mode & 0o111 else "permission denied"


def _describe_error(error: OSError) -> str:
    if error.errno == errno.ENOEXEC:
        return "exec format error"
    return (error.strerror or str(error)).lower()
