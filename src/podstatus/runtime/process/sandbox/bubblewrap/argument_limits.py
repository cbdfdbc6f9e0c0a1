"""Limit of a sandbox's size: bubblewrap accepts 9,000 arguments and exits if there are more.

A container over the limit is rejected before its start, with the counts: otherwise bubblewrap would
fail at each of endless restarts.

Upstream: MAX_ARGS, bubblewrap.c v0.8.0; arguments from `--args` and those of the command both
count.
"""

from collections.abc import Collection, Mapping, Sequence

from podstatus.kube.objects.containers import Container
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.spec.config_errors import config_error

MAX_ARGUMENTS = 9000
_RESERVED_ARGUMENTS = 16
"""Arguments that the shim adds: file descriptors, and the separator before the command."""
_ARGUMENTS_PER_VARIABLE = 3
MAX_VARIABLES = MAX_ARGUMENTS // _ARGUMENTS_PER_VARIABLE
MAX_MOUNTS = 500
"""volumeMounts of one container; each takes at least three arguments, and the root a few hundred.
"""


def check_spec(container: Container) -> None:
    """Reject what cannot fit before anything is created. Raises CannotStartError."""
    mounts = len(container.volume_mounts or ())
    if mounts > MAX_MOUNTS:
        raise config_error(
            f"{mounts} volumeMounts are not supported: a sandbox has at most {MAX_MOUNTS}; "
            "mount fewer, larger volumes"
        )
    check_variables({variable.name for variable in container.env or ()})


def check_variables(names: Collection[str]) -> None:
    """Reject more variables than fit in any case. Raises CannotStartError."""
    if len(names) > MAX_VARIABLES:
        raise _too_many_arguments(len(names), len(names) * _ARGUMENTS_PER_VARIABLE)


def check_arguments(
    arguments: Sequence[str], argv: Sequence[str], env: Mapping[str, str], mounts: int
) -> None:
    """Reject more arguments than bubblewrap accepts. Raises CannotStartError."""
    count = len(arguments) + len(argv) + _RESERVED_ARGUMENTS
    if count > MAX_ARGUMENTS:
        more = f", {mounts} mounts and {len(argv)} command arguments"
        raise _too_many_arguments(len(env), count, more)


def _too_many_arguments(variables: int, count: int, more: str = "") -> CannotStartError:
    return config_error(
        f"{variables} environment variables{more} are not supported: they take {count} arguments "
        f"of bubblewrap, which accepts {MAX_ARGUMENTS}; put variables into a volume, or arguments "
        "into a file"
    )
