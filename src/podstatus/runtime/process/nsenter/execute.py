"""Run a program, found as a container finds it; in words that users of kubectl know.

Upstream: exec.LookPath of Go, by which runc looks for it.
"""

import errno
import json
import os
import signal
import stat

from .request import ExecError

_ALL_SIGNALS = frozenset(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}


def execute(argv: list[str], env: dict[str, str], cwd: str) -> None:
    """Become that program. Raises FailedError."""
    if any("\0" in word for word in argv):
        raise ExecError(f"exec: {json.dumps(argv[0])}: invalid argument")
    try:
        os.chdir(cwd)
    except OSError as error:
        raise ExecError(f'chdir "{cwd}": {_describe_error(error)}') from error
    program = _find_program(argv[0], env.get("PATH", ""))
    try:
        os.execve(program, argv, env)  # noqa: S606 - no shell is what is wanted
    except (OSError, ValueError) as error:
        why = _describe_error(error) if isinstance(error, OSError) else str(error)
        raise ExecError(f"exec {program}: {why}") from error


def reset_signals() -> None:
    """Python ignores some, which whoever is executed would go on to do."""
    for number in _ALL_SIGNALS:
        try:
            signal.signal(number, signal.SIG_DFL)
        except OSError:
            # The C library keeps two for itself.
            continue
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _find_program(name: str, path: str) -> str:
    if "/" in name:
        try:
            why = _not_executable_reason(name)
        except OSError as error:
            raise ExecError(f'exec: "{name}": stat {name}: {_describe_error(error)}') from error
        if why:
            raise ExecError(f'exec: "{name}": {why}')
        return name
    for folder in filter(None, path.split(":")):
        found = f"{folder}/{name}"
        try:
            if not _not_executable_reason(found):
                return found
        except OSError:
            continue
    raise ExecError(f'exec: "{name}": executable file not found in $PATH')


def _not_executable_reason(path: str) -> str:
    mode = os.stat(path).st_mode  # noqa: PTH116 - little is loaded here
    if stat.S_ISDIR(mode):
        return "is a directory"
    return "" if mode & 0o111 else "permission denied"


def _describe_error(error: OSError) -> str:
    if error.errno == errno.ENOEXEC:
        return "exec format error"
    return (error.strerror or str(error)).lower()
