from podstatus.runtime.process.sandbox.bubblewrap.arguments import (
    ExpandedFolder,
    Mount,
    SandboxSpec,
    bubblewrap_args,
    setpriv_args,
)
from podstatus.runtime.process.spec.security import ProcessCredentials

ROOT = ExpandedFolder(path="/", entries=("etc", "usr"), links={"bin": "usr/bin"})
WHO = ProcessCredentials(user=0, group=0, capabilities=("KILL",))


def arguments(box: SandboxSpec, who: ProcessCredentials = WHO, *, root: bool = True) -> list[str]:
    return list(bubblewrap_args("/usr/bin/bwrap", box, who, root=root).argv)


def position(found: list[str], *wanted: str) -> int:
    """Where these stand in a row."""
    size = len(wanted)
    return next(i for i in range(len(found)) if tuple(found[i : i + size]) == wanted)


def test_parents_are_mounted_before_children_and_all_before_it_is_read_only() -> None:
    box = SandboxSpec(
        folders=(ROOT,),
        hidden=("/run",),
        tmp="/t",
        mounts=(
            Mount(source="/s/inner", target="/data/a/b"),
            Mount(source="/s/outer", target="/data", read_only=True),
        ),
    )
    found = arguments(box)
    order = [
        position(found, "--ro-bind-try", "/etc", "/etc"),
        position(found, "--tmpfs", "/run"),
        position(found, "--bind", "/t", "/tmp"),
        position(found, "--ro-bind", "/s/outer", "/data"),
        position(found, "--bind", "/s/inner", "/data/a/b"),
        position(found, "--remount-ro", "/run"),
        position(found, "--remount-ro", "/"),
        position(found, "--clearenv"),
    ]
    assert order == sorted(order)
    assert "/data/a" not in found, "the way through a volume is not bubblewrap's to make"


def test_the_way_to_a_mount_is_open_to_all() -> None:
    mount = Mount(source="/s", target="/run/secrets/x")
    found = arguments(SandboxSpec(folders=(ROOT,), hidden=("/run",), tmp="/t", mounts=(mount,)))
    assert position(found, "--perms", "0755", "--dir", "/run/secrets") > 0


def test_values_are_arguments_of_their_own() -> None:
    env = {"A": "x\n--bind / /", "B": ""}
    found = arguments(SandboxSpec(folders=(ROOT,), tmp="/t", env=env, cwd="/w"))
    assert found[found.index("--clearenv") :] == [
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
    found = arguments(SandboxSpec(folders=(ROOT,), tmp="/t"))
    assert position(found, "--cap-drop", "ALL", "--cap-add", "CAP_KILL") > 0
    assert "--cap-add" not in arguments(SandboxSpec(folders=(ROOT,), tmp="/t"), root=False)


def test_whoever_becomes_another_may_do_so_once() -> None:
    who = ProcessCredentials(user=5, group=6, groups=(7, 8))
    found = arguments(SandboxSpec(folders=(ROOT,), tmp="/t"), who)
    assert position(found, "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETUID") > 0
    expected = ("--reuid=5", "--regid=6", "--groups=7,8", "--inh-caps=-all", "--")
    assert setpriv_args("/usr/bin/setpriv", who)[1:] == expected
    alone = ProcessCredentials(user=5, group=6, groups=())
    assert "--clear-groups" in setpriv_args("/usr/bin/setpriv", alone)
