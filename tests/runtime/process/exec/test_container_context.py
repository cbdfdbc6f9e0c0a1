import pytest

from podstatus.runtime.process.exec.container_context import ExecContext, exec_context
from podstatus.runtime.process.spec.capabilities import CAPABILITIES
from tests.runtime.process.a_log import a_launch

CHOWN, KILL, SYS_ADMIN = 0, 5, 21


def isolated(*arguments: str, argv: tuple[str, ...] = ("sleep",)) -> ExecContext:
    return exec_context(a_launch(bubblewrap=("bwrap", *arguments), cwd="", argv=argv))


def test_without_isolation_it_is_as_the_launch_says() -> None:
    launch = a_launch(env={"A": "b"}, cwd="/x", user=1, group=2, groups=(3,))
    context = exec_context(launch)
    assert context == ExecContext(
        env={"A": "b"}, cwd="/x", user=1, group=2, groups=(3,), capabilities=None
    )


def test_the_environment_and_the_folder_are_among_the_arguments() -> None:
    context = isolated(
        *("--setenv", "LOST", "1", "--clearenv", "--setenv", "A", "--chdir"),
        *("--setenv", "B", "", "--setenv", "C", "1", "--unsetenv", "C", "--chdir", "/--setenv"),
        *("--", "--setenv", "D", "1"),
    )
    assert context == ExecContext(env={"A": "--chdir", "B": ""}, cwd="/--setenv")


def test_values_of_other_options_are_not_taken_for_options() -> None:
    context = isolated(
        *("--ro-bind", "--clearenv", "--chdir", "--hostname", "--setenv", "--as-pid-1"),
        *("--perms", "0755", "--tmpfs", "/run", "--setenv", "A", "1"),
    )
    assert context == ExecContext(env={"A": "1"}, cwd="/")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), ()),
        (("--cap-drop", "ALL"), ()),
        (("--cap-drop", "ALL", "--cap-add", "CAP_KILL", "--cap-add", "CAP_CHOWN"), (CHOWN, KILL)),
        (("--cap-add", "CAP_KILL", "--cap-drop", "ALL"), ()),
        (("--cap-add", "CAP_KILL", "--cap-add", "CAP_CHOWN", "--cap-drop", "CAP_KILL"), (CHOWN,)),
    ],
)
def test_only_capabilities_that_were_added_count(
    arguments: tuple[str, ...], expected: tuple[int, ...]
) -> None:
    assert isolated(*arguments).capabilities == expected


def test_capabilities_have_the_numbers_of_the_kernel() -> None:
    assert (CAPABILITIES[KILL], CAPABILITIES[SYS_ADMIN]) == ("KILL", "SYS_ADMIN")
    assert CAPABILITIES.index("CHECKPOINT_RESTORE") == len(CAPABILITIES) - 1 == 40


def test_who_it_becomes_inside_has_no_capabilities() -> None:
    switch = ("/usr/bin/setpriv", "--reuid=7", "--regid=8", "--groups=9,10", "--inh-caps=-all")
    context = isolated("--cap-add", "CAP_SETUID", argv=(*switch, "--", "sleep"))
    assert (context.user, context.group, context.groups) == (7, 8, (9, 10))
    assert context.capabilities == ()


def test_who_is_in_no_groups() -> None:
    switch = ("setpriv", "--reuid=0", "--regid=0", "--clear-groups")
    context = isolated("--cap-add", "CAP_KILL", argv=(*switch, "--", "sleep"))
    assert (context.user, context.group, context.groups) == (0, 0, ())
    assert context.capabilities == (KILL,)


@pytest.mark.parametrize(
    "argv",
    [
        ("sleep", "--", "1"),
        ("setpriv", "--nnp", "--", "sleep"),
        ("setpriv", "--reuid=7"),
        ("setpriv", "--reuid", "7", "--regid", "8", "--", "sleep"),
        ("setpriv", "--reuid=nobody", "--regid=nogroup", "--", "sleep"),
    ],
)
def test_other_commands_do_not_switch_users(argv: tuple[str, ...]) -> None:
    context = isolated(argv=argv)
    assert (context.user, context.group, context.groups) == (None, None, None)
