"""Decisions of the default profile, and the BPF program for the kernel."""

import errno
from collections.abc import Mapping
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.runtime.process.seccomp.bpf_filter import MAX_INSTRUCTIONS, assemble
from podstatus.runtime.process.seccomp.default_profile import (
    ALLOWED,
    ALWAYS,
    ARGUMENT_FILTERED,
    BY_CAPABILITY,
    NOT_IMPLEMENTED,
    NOT_PERMITTED,
    Allowed,
    ArgumentFilter,
    Decision,
    Denied,
    decide,
    default_profile,
)
from podstatus.runtime.process.seccomp.syscall_numbers import ARCHITECTURES
from podstatus.runtime.process.spec.capabilities import ADDABLE, CAPABILITIES, SANDBOX_DEFAULT
from tests.runtime.process.seccomp.bpf_machine import ALLOW, ERRNO, KILL_PROCESS, returned

MACHINES = tuple(ARCHITECTURES)
EPERM, ENOSYS = ERRNO | errno.EPERM, ERRNO | errno.ENOSYS
X32, I386, ARM, RISCV = 0x4000_0000, 0x4000_0003, 0x4000_0028, 0xC000_00F3
NEW_USERS, NEW_MOUNTS, NEW_CGROUPS = 0x1000_0000, 0x0002_0000, 0x0200_0000
NO_CONTAINER_MAY = (
    *("add_key", "bpf", "clone3", "delete_module", "fanotify_init", "finit_module", "fsconfig"),
    *("fsmount", "fsopen", "fspick", "init_module", "io_uring_enter", "io_uring_register"),
    *("io_uring_setup", "kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "mount"),
    *("mount_setattr", "move_mount", "nfsservctl", "open_by_handle_at", "open_tree"),
    *("open_tree_attr", "perf_event_open", "pidfd_getfd", "pivot_root", "process_vm_readv"),
    *("process_vm_writev", "quotactl", "quotactl_fd", "reboot", "request_key", "setdomainname"),
    *("sethostname", "setns", "settimeofday", "swapoff", "swapon", "syslog", "umount2"),
    *("unshare", "userfaultfd", "acct", "kcmp", "clock_settime", "vhangup"),
)


@cache
def program_of(machine: str, *capabilities: str) -> bytes:
    architecture = ARCHITECTURES[machine]
    return assemble(architecture.audit, default_profile(architecture, capabilities))


def of_call(machine: str, name: str, *arguments: int, having: tuple[str, ...] = ()) -> int:
    architecture = ARCHITECTURES[machine]
    program = program_of(machine, *having)
    return returned(program, architecture.audit, architecture.numbers[name], arguments)


def expected(decision: Decision, argument: int) -> int:
    match decision:
        case Allowed():
            return ALLOW
        case Denied(error_number=number):
            return ERRNO | number
        case ArgumentFilter():
            matches = argument & decision.mask in decision.values
            return expected(decision.matching if matches else decision.others, argument)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", NO_CONTAINER_MAY)
def test_a_call_is_refused_whatever_may_be_added_under_bubblewrap(machine: str, name: str) -> None:
    may_have = tuple(SANDBOX_DEFAULT | ADDABLE)
    assert of_call(machine, name, having=may_have) in (EPERM, ENOSYS)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_call_comes_out_of_the_program_as_the_profile_decides(machine: str) -> None:
    architecture = ARCHITECTURES[machine]
    for having in ((), tuple(SANDBOX_DEFAULT), CAPABILITIES):
        program = program_of(machine, *having)
        for name, number in architecture.numbers.items():
            for argument in (0, 1, 8, 16, 38, 40, NEW_USERS, 0x4206, 0xFFFF_FFFF):
                came = returned(program, architecture.audit, number, (argument,))
                assert came == expected(decide(name, having), argument), (name, argument)


@pytest.mark.parametrize("machine", MACHINES)
def test_another_abi_is_killed(machine: str) -> None:
    program = program_of(machine, *CAPABILITIES)
    others = {each.audit for each in ARCHITECTURES.values()} - {ARCHITECTURES[machine].audit}
    for audit in (*others, I386, ARM, RISCV, 0):
        for number in range(600):
            assert returned(program, audit, number) == KILL_PROCESS


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_above_all_that_are_known_do_not_exist(machine: str) -> None:
    architecture = ARCHITECTURES[machine]
    program = program_of(machine, *CAPABILITIES)
    last = max(architecture.numbers.values())
    for number in (last + 1, 10_000, X32, *range(X32, X32 + 600), 0x8000_0000, 0xFFFF_FFFF):
        assert returned(program, architecture.audit, number) == ENOSYS


def test_numbers_between_those_that_are_known_are_not_permitted() -> None:
    assert returned(program_of("x86_64"), ARCHITECTURES["x86_64"].audit, 400) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "argument", "came"),
    [
        ("clone", 0x1200011, ALLOW),  # fork
        ("clone", 0x3D0F00, ALLOW),  # a thread
        ("clone", NEW_USERS | 17, EPERM),
        ("clone", NEW_MOUNTS | NEW_CGROUPS, EPERM),
        ("clone", 1 << 32 | NEW_USERS, EPERM),
        ("clone3", 0, ENOSYS),
        ("personality", 0, ALLOW),
        ("personality", 0xFFFF_FFFF, ALLOW),
        ("personality", 0x0040000, EPERM),  # ADDR_NO_RANDOMIZE
        ("ptrace", 0, ALLOW),
        ("ptrace", 16, EPERM),
        ("ptrace", 0x4206, EPERM),
        ("socket", 1, ALLOW),
        ("socket", 10, ALLOW),
        ("socket", 38, EPERM),
        ("socket", 40, EPERM),
        ("socket", 1 << 32 | 40, EPERM),  # the kernel reads an int
    ],
)
def test_a_call_is_judged_by_its_argument(
    machine: str, name: str, argument: int, came: int
) -> None:
    assert of_call(machine, name, argument) == came


@pytest.mark.parametrize(
    ("capability", "name"), [("SYS_ADMIN", "mount"), ("SYS_CHROOT", "chroot"), ("BPF", "bpf")]
)
def test_a_capability_opens_its_calls(capability: str, name: str) -> None:
    assert of_call("x86_64", name) == EPERM
    assert of_call("x86_64", name, having=(capability,)) == ALLOW


def test_admin_may_have_namespaces() -> None:
    assert of_call("x86_64", "clone", NEW_USERS, having=("SYS_ADMIN",)) == ALLOW
    assert of_call("x86_64", "clone3", having=("SYS_ADMIN",)) == ALLOW


@pytest.mark.parametrize(
    "name", ["setuid", "setresuid", "setgroups", "capset", "prctl", "execve", "seccomp"]
)
def test_what_changes_the_user_inside_is_allowed(name: str) -> None:
    """The filter is installed before setpriv runs."""
    assert {of_call(machine, name) for machine in MACHINES} == {ALLOW}


def test_the_profile_names_no_call_that_is_not_known() -> None:
    named = {*ALWAYS, *ARGUMENT_FILTERED}.union(*BY_CAPABILITY.values())
    assert named - {*ARCHITECTURES["x86_64"].numbers} == set()
    assert {*BY_CAPABILITY} - {*CAPABILITIES} == set()
    assert {*ALWAYS} & {*ARGUMENT_FILTERED}.union(*BY_CAPABILITY.values()) == set()


@pytest.mark.parametrize(
    ("machine", "expected_numbers"),
    [
        ("x86_64", {"read": 0, "clone": 56, "unshare": 272, "keyctl": 250, "clone3": 435}),
        ("aarch64", {"read": 63, "clone": 220, "unshare": 97, "keyctl": 219, "clone3": 435}),
    ],
)
def test_numbers_are_the_kernels(machine: str, expected_numbers: Mapping[str, int]) -> None:
    numbers = ARCHITECTURES[machine].numbers
    assert {name: numbers[name] for name in expected_numbers} == expected_numbers
    assert len({*numbers.values()}) == len(numbers)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_kernel_takes_programs_of_this_size(machine: str) -> None:
    assert len(program_of(machine)) // 8 <= MAX_INSTRUCTIONS // 10


DECISIONS = st.sampled_from(
    (
        ALLOWED,
        NOT_PERMITTED,
        NOT_IMPLEMENTED,
        ArgumentFilter(
            argument=2, mask=0xF0, values=(0, 0x30), matching=ALLOWED, others=NOT_PERMITTED
        ),
    )
)


@given(
    profile=st.dictionaries(st.integers(0, 700), DECISIONS, min_size=1, max_size=400),
    argument=st.integers(0, 2**64 - 1),
)
def test_any_profile_becomes_a_program_that_decides_the_same(
    profile: dict[int, Decision], argument: int
) -> None:
    program = assemble(7, profile)
    for number in {*profile, *range(0, 710, 7)}:
        beyond = NOT_IMPLEMENTED if number > max(profile) else NOT_PERMITTED
        decision = profile.get(number, beyond)
        assert returned(program, 7, number, (0, 0, argument)) == expected(decision, argument)
