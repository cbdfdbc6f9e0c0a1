"""What a container's command was given, for one more command that is to have the same.

An isolated container has it among the arguments of bubblewrap. Those were written by the agent:
whatever the container did to itself since does not count.
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
"""How many values follow an option of bubblewrap; 1 for all others."""


class ExecContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a command finds."""

    env: dict[str, str]
    cwd: str
    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] | None = None
    """None: as the agent's."""
    capabilities: tuple[int, ...] | None = ()
    """Numbers; None: as the agent's, an ordinary user."""


def exec_context(launch: LaunchRecord) -> ExecContext:
    """What the command of a container was given."""
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
    # Those it takes to become another user are gone with being root.
    return () if user else capability_numbers(added)


def _switched_user(launch: LaunchRecord) -> tuple[int, int, tuple[int, ...]] | None:
    """Who the command becomes inside, where root starts it: what `switch_user` put before it."""
    if launch.bubblewrap is None or "--" not in launch.argv:
        return None
    program, *options = launch.argv[: launch.argv.index("--")]
    values = dict(option.partition("=")[::2] for option in options)
    numbers = values.get("--reuid", ""), values.get("--regid", "")
    # One of the pod's own may be written otherwise: that is for the container alone.
    if program.rpartition("/")[2] != "setpriv" or not all(map(str.isdecimal, numbers)):
        return None
    groups = tuple(
        int(group) for group in values.get("--groups", "").split(",") if group.isdecimal()
    )
    return int(numbers[0]), int(numbers[1]), groups


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Without the program, and without what follows `--`."""
    at = 1
    while at < len(arguments) and arguments[at] != "--":
        count = _OPTION_ARITY.get(arguments[at], 1)
        yield arguments[at], tuple(arguments[at + 1 : at + 1 + count])
        at += 1 + count
