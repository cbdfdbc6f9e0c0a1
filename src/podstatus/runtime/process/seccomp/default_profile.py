"""The default seccomp profile: the system calls that a container may make.

Calls that are not listed are denied with EPERM, as in containerd; docs/decisions/0038 lists where
this profile is stricter. Calls that are unknown to the profile fail with ENOSYS, so that a C
library that tries a newer call falls back.

Upstream: DefaultProfile, contrib/seccomp/seccomp_default.go of containerd v2.2; the ENOSYS of
unknown calls: libcontainer/seccomp/patchbpf of runc.
"""

import errno
from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from podstatus.runtime.process.seccomp.syscall_numbers import Architecture

_FULL_MASK: Final = 0xFFFF_FFFF


class Allowed(msgspec.Struct, frozen=True):
    """The call proceeds as without a filter."""


class Denied(msgspec.Struct, frozen=True):
    """The call fails with an errno."""

    error_number: int
    """The errno that the caller sees."""


class ArgumentFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The decision depends on one argument of the call.

    Only its low 32 bits are compared, as Linux reads no more of these arguments.
    """

    argument: int
    mask: int = _FULL_MASK
    values: tuple[int, ...]
    """Values that the masked argument is compared to."""
    matching: Allowed | Denied
    others: Allowed | Denied


Decision = Allowed | Denied | ArgumentFilter

ALLOWED: Final = Allowed()
NOT_PERMITTED: Final = Denied(errno.EPERM)
NOT_IMPLEMENTED: Final = Denied(errno.ENOSYS)

_FILES: Final = """
access cachestat chdir chmod chown close close_range copy_file_range creat dup dup2 dup3
faccessat faccessat2 fadvise64 fallocate fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown
fchownat fcntl fdatasync fgetxattr flistxattr flock fremovexattr fsetxattr fstat fstatfs fsync
ftruncate futimesat getcwd getdents getdents64 getxattr getxattrat inotify_add_watch inotify_init
inotify_init1 inotify_rm_watch ioctl lchown lgetxattr link linkat listmount listxattr listxattrat
llistxattr lremovexattr lseek lsetxattr lstat mkdir mkdirat mknod mknodat name_to_handle_at
newfstatat open openat openat2 pipe pipe2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read
readahead readlink readlinkat readv removexattr removexattrat rename renameat renameat2 rmdir
sendfile setxattr setxattrat splice stat statfs statmount statx symlink symlinkat sync
sync_file_range syncfs tee truncate umask unlink unlinkat utime utimensat utimes vmsplice write
writev
"""
_POLLING: Final = """
epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait
epoll_wait_old eventfd eventfd2 io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit
pause poll ppoll pselect6 restart_syscall select signalfd signalfd4
"""
_MEMORY: Final = """
brk madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mlock mlock2 mlockall
mmap mprotect mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect
process_mrelease remap_file_pages
"""
_PROCESSES: Final = """
arch_prctl capget capset execve execveat exit exit_group fork futex futex_requeue futex_wait
futex_waitv futex_wake get_robust_list get_thread_area getcpu getegid geteuid getgid getgroups
getpgid getpgrp getpid getppid getpriority getresgid getresuid getrlimit getrusage getsid gettid
getuid ioprio_get ioprio_set kill landlock_add_rule landlock_create_ruleset landlock_restrict_self
lsm_get_self_attr lsm_list_modules lsm_set_self_attr modify_ldt pidfd_open pidfd_send_signal prctl
prlimit64 rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn
rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min
sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp
set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setpgid
setpriority setregid setresgid setresuid setreuid setrlimit setsid setuid sigaltstack tgkill tkill
uprobe uretprobe vfork wait4 waitid
"""
_NETWORKING_AND_IPC: Final = """
accept accept4 bind connect getpeername getsockname getsockopt listen mq_getsetattr mq_notify
mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd recvfrom recvmmsg
recvmsg semctl semget semop semtimedop sendmmsg sendmsg sendto setsockopt shmat shmctl shmdt
shmget shutdown socketpair
"""
_TIME_AND_MACHINE: Final = """
adjtimex alarm clock_adjtime clock_getres clock_gettime clock_nanosleep getitimer getrandom
gettimeofday nanosleep setitimer sysinfo time timer_create timer_delete timer_getoverrun
timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times uname
"""
ALWAYS: Final = frozenset(
    " ".join(
        (_FILES, _POLLING, _MEMORY, _PROCESSES, _NETWORKING_AND_IPC, _TIME_AND_MACHINE)
    ).split()
)
"""Calls that every container may make. Linux applies no filter to uprobe and uretprobe, which only
code placed by the kernel itself can call.
"""

BY_CAPABILITY: Final[Mapping[str, frozenset[str]]] = {
    capability: frozenset(names.split())
    for capability, names in {
        "BPF": "bpf",
        "DAC_READ_SEARCH": "open_by_handle_at",
        "PERFMON": "perf_event_open",
        "SYSLOG": "syslog",
        "SYS_ADMIN": """
            bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie mount
            mount_setattr move_mount open_tree perf_event_open quotactl quotactl_fd setdomainname
            sethostname setns syslog umount2 unshare
        """,
        "SYS_BOOT": "reboot",
        "SYS_CHROOT": "chroot",
        "SYS_MODULE": "delete_module finit_module init_module",
        "SYS_NICE": "get_mempolicy mbind set_mempolicy set_mempolicy_home_node",
        "SYS_PACCT": "acct",
        "SYS_PTRACE": """
            kcmp pidfd_getfd process_madvise process_vm_readv process_vm_writev ptrace
        """,
        "SYS_RAWIO": "ioperm iopl",
        "SYS_TIME": "clock_settime settimeofday",
        "SYS_TTY_CONFIG": "vhangup",
    }.items()
}
"""Additional calls for containers with the capability."""

# linux/sched.h: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
_NAMESPACES: Final = 0x0002_0000 | 0x7E00_0000
_AF_ALG, _AF_VSOCK = 38, 40
_PTRACE_ATTACH, _PTRACE_SEIZE = 16, 0x4206
# PER_LINUX, PER_LINUX32, both with UNAME26, and the question which one it is.
_PERSONALITIES: Final = (0x0, 0x8, 0x2_0000, 0x2_0008, 0xFFFF_FFFF)

ARGUMENT_FILTERED: Final[Mapping[str, Decision]] = {
    "clone": ArgumentFilter(
        argument=0, mask=_NAMESPACES, values=(0,), matching=ALLOWED, others=NOT_PERMITTED
    ),
    # Its flags are behind a pointer, out of a filter's reach; the C library falls back to clone.
    "clone3": NOT_IMPLEMENTED,
    "personality": ArgumentFilter(
        argument=0, values=_PERSONALITIES, matching=ALLOWED, others=NOT_PERMITTED
    ),
    # A process may ask to be traced (PTRACE_TRACEME), but not attach to others: without isolation,
    # all processes of the user are within reach.
    "ptrace": ArgumentFilter(
        argument=0,
        values=(_PTRACE_ATTACH, _PTRACE_SEIZE),
        matching=NOT_PERMITTED,
        others=ALLOWED,
    ),
    "socket": ArgumentFilter(
        argument=0, values=(_AF_ALG, _AF_VSOCK), matching=NOT_PERMITTED, others=ALLOWED
    ),
}
"""Calls whose arguments are checked, unless a capability allows them altogether."""


def decide(name: str, capabilities: Collection[str]) -> Decision:
    """Return the decision for a call by a container with these capabilities, named as in a spec."""
    if name in ALWAYS or any(name in BY_CAPABILITY.get(each, ()) for each in capabilities):
        return ALLOWED
    return ARGUMENT_FILTERED.get(name, NOT_PERMITTED)


def default_profile(
    architecture: Architecture, capabilities: Collection[str]
) -> Mapping[int, Decision]:
    """Return the decision for each call of the architecture, by number."""
    return {number: decide(name, capabilities) for name, number in architecture.numbers.items()}
