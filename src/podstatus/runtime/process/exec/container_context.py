"""The environment, user and capabilities of a container's command, for exec.

For an isolated container they are parsed from the arguments of bubblewrap. The agent wrote those,
so whatever the container changed since has no effect.
"""

from collections.abc import Iterator, Sequence

import msgspec

from podstatus.runtime.process.records.models import LaunchRecord
from podstatus.runtime.process.spec.capabilities import capability_numbers

_OPTION_ARITY = {
    "--setenv": 2,
    "--bind": 2,
    "--bind-try": 2,
    "--dev-bind": 2,
    "--dev-bind-try": 2,
    "--ro-bind": 2,
    "--ro-bind-try": 2,
    "--bind-fd": 2,
    "--ro-bind-fd": 2,
    "--file": 2,
    "--bind-data": 2,
    "--ro-bind-data": 2,
    "--symlink": 2,
    "--chmod": 2,
    "--overlay": 3,
    "--unshare-all": 0,
    "--share-net": 0,
    "--unshare-user": 0,
    "--unshare-user-try": 0,
    "--unshare-ipc": 0,
    "--unshare-pid": 0,
    "--unshare-net": 0,
    "--unshare-uts": 0,
    "--unshare-cgroup": 0,
    "--unshare-cgroup-try": 0,
    "--disable-userns": 0,
    "--assert-userns-disabled": 0,
    "--clearenv": 0,
    "--new-session": 0,
    "--die-with-parent": 0,
    "--as-pid-1": 0,
    "--level-prefix": 0,
}
"""Number of values of a bubblewrap option; 1 for all others."""


class ExecContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a command inherits from its container."""

    env: dict[str, str]
    cwd: str
    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] | None = None
    """None: those of the agent."""
    capabilities: tuple[int, ...] | None = ()
    """Capability numbers; None: those of the agent, an ordinary user."""


def exec_context(launch: LaunchRecord) -> ExecContext:
    """Return the context of a container's command."""
    env, cwd, added = dict(launch.env), launch.cwd, set[str]()
    for option, values in _options(launch.bubblewrap or ()):
        match option, values:
            case "--clearenv", _:
                env.clear()
            case "--setenv", (name, value):
                env[name] = value
            case "--unsetenv", (name,):
                env.pop(name, None)
            case "--chdir", (path,):
                cwd = path
            case "--cap-add", (name,):
                added.add(name)
            case "--cap-drop", (name,):
                added = set() if name == "ALL" else added - {name}
            case _:
                pass
    user, group, groups = _switched_user(launch) or (launch.user, launch.group, launch.groups)
    return ExecContext(
        env=env,
        cwd=cwd or "/",
        user=user,
        group=group,
        groups=groups,
        capabilities=_capabilities(launch, added, user),
    )


def _capabilities(
    launch: LaunchRecord, added: set[str], user: int | None
) -> tuple[int, ...] | None:
    if launch.bubblewrap is None:
        return launch.capabilities
    # The capabilities needed to switch the user are lost with the switch from root.
    return () if user else capability_numbers(added)


def _switched_user(launch: LaunchRecord) -> tuple[int, int, tuple[int, ...]] | None:
    """Return user, group and groups of the `setpriv` that root puts before a command, if any."""
    if launch.bubblewrap is None or "--" not in launch.argv:
        return None
    program, *options = launch.argv[: launch.argv.index("--")]
    values = dict(option.partition("=")[::2] for option in options)
    numbers = values.get("--reuid", ""), values.get("--regid", "")
    # A command of the pod itself may look similar; that affects only this container.
    if program.rpartition("/")[2] != "setpriv" or not all(map(str.isdecimal, numbers)):
        return None
    groups = tuple(
        int(group) for group in values.get("--groups", "").split(",") if group.isdecimal()
    )
    return int(numbers[0]), int(numbers[1]), groups


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the options of a bubblewrap command line, up to `--`."""
    index = 1
    while index < len(arguments) and arguments[index] != "--":
        count = _OPTION_ARITY.get(arguments[index], 1)
        yield arguments[index], tuple(arguments[index + 1 : index + 1 + count])
        index += 1 + count
