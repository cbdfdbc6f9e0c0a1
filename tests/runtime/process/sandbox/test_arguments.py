from podstatus.runtime.process.sandbox.bubblewrap.arguments import (
    ExpandedFolder,
    Mount,
    SandboxSpec,
    bubblewrap_args,
    setpriv_args,
)
from podstatus.runtime.process.spec.security import ProcessCredentials

ROOT = ExpandedFolder(path="/", entries=("etc", "usr"), links={"bin": "usr/bin"})
ROOT_USER = ProcessCredentials(user=0, group=0, capabilities=("KILL",))


def arguments(
    sandbox: SandboxSpec, run_as: ProcessCredentials = ROOT_USER, *, root: bool = True
) -> list[str]:
    return list(bubblewrap_args("/usr/bin/bwrap", sandbox, run_as, root=root).argv)


def position(args: list[str], *expected: str) -> int:
    """Return the index of consecutive arguments."""
    size = len(expected)
    return next(i for i in range(len(args)) if tuple(args[i : i + size]) == expected)


def test_parents_are_mounted_before_children_and_all_before_it_is_read_only() -> None:
    sandbox = SandboxSpec(
        folders=(ROOT,),
        hidden=("/run",),
        tmp="/t",
        mounts=(
            Mount(source="/s/inner", target="/data/a/b"),
            Mount(source="/s/outer", target="/data", read_only=True),
        ),
    )
    args = arguments(sandbox)
    order = [
        position(args, "--ro-bind-try", "/etc", "/etc"),
        position(args, "--tmpfs", "/run"),
        position(args, "--bind", "/t", "/tmp"),
        position(args, "--ro-bind", "/s/outer", "/data"),
        position(args, "--bind", "/s/inner", "/data/a/b"),
        position(args, "--remount-ro", "/run"),
        position(args, "--remount-ro", "/"),
        position(args, "--clearenv"),
    ]
    assert order == sorted(order)
    assert "/data/a" not in args, "the way through a volume is not bubblewrap's to make"


def test_the_way_to_a_mount_is_open_to_all() -> None:
    mount = Mount(source="/s", target="/run/secrets/x")
    args = arguments(SandboxSpec(folders=(ROOT,), hidden=("/run",), tmp="/t", mounts=(mount,)))
    assert position(args, "--perms", "0755", "--dir", "/run/secrets") > 0


def test_values_are_arguments_of_their_own() -> None:
    env = {"A": "x\n--bind / /", "B": ""}
    args = arguments(SandboxSpec(folders=(ROOT,), tmp="/t", env=env, cwd="/w"))
    assert args[args.index("--clearenv") :] == [
        *("--clearenv", "--setenv", "A", "x\n--bind / /", "--setenv", "B", ""),
        *("--chdir", "/w"),
    ]


def test_namespaces_are_shared_only_if_asked_for() -> None:
    own = arguments(SandboxSpec(folders=(ROOT,), tmp="/t", hostname="p"))
    assert own[:4] == ["/usr/bin/bwrap", "--unshare-pid", "--as-pid-1", "--die-with-parent"]
    assert {"--unshare-ipc", "--unshare-uts"} <= set(own)
    shared = arguments(SandboxSpec(folders=(ROOT,), tmp="/t", share_ipc=True))
    assert not {"--unshare-ipc", "--unshare-uts", "--hostname"} & set(shared)


def test_capabilities_are_dropped_before_some_are_kept() -> None:
    args = arguments(SandboxSpec(folders=(ROOT,), tmp="/t"))
    assert position(args, "--cap-drop", "ALL", "--cap-add", "CAP_KILL") > 0
    assert "--cap-add" not in arguments(SandboxSpec(folders=(ROOT,), tmp="/t"), root=False)


def test_a_command_may_switch_its_user_once() -> None:
    run_as = ProcessCredentials(user=5, group=6, groups=(7, 8))
    args = arguments(SandboxSpec(folders=(ROOT,), tmp="/t"), run_as)
    assert position(args, "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETUID") > 0
    expected = ("--reuid=5", "--regid=6", "--groups=7,8", "--inh-caps=-all", "--")
    assert setpriv_args("/usr/bin/setpriv", run_as)[1:] == expected
    alone = ProcessCredentials(user=5, group=6, groups=())
    assert "--clear-groups" in setpriv_args("/usr/bin/setpriv", alone)
