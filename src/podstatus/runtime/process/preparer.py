"""From a pod's spec to a command that the shim can start."""

import asyncio
import os
import pwd
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from podstatus.base.clock import Clock
from podstatus.kube.expansion import MAX_TOTAL_BYTES, ArgumentListTooLongError, ExecBudget
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.paths.safe_paths import make_private
from podstatus.runtime.process.pod_objects import PodObjects, References
from podstatus.runtime.process.records.layout import ContainerFolder
from podstatus.runtime.process.records.models import HostPathArgument
from podstatus.runtime.process.sandbox.bubblewrap.argument_limits import (
    check_arguments,
    check_spec,
    check_variables,
)
from podstatus.runtime.process.sandbox.bubblewrap.arguments import (
    BubblewrapArgs,
    bubblewrap_args,
    kept_capabilities,
    switch_user,
)
from podstatus.runtime.process.sandbox.builder import Placed, SandboxBuilder
from podstatus.runtime.process.sandbox.isolation import Bubblewrap
from podstatus.runtime.process.sandbox.seccomp_support import NoSeccompError, find_architecture
from podstatus.runtime.process.sandbox.unsandboxed import Outside, own_folders, own_message
from podstatus.runtime.process.seccomp.selection import seccomp_program
from podstatus.runtime.process.spec.capabilities import capability_numbers
from podstatus.runtime.process.spec.config_errors import config_error, not_honoured
from podstatus.runtime.process.spec.downward_api import Surroundings
from podstatus.runtime.process.spec.environment import (
    declared_environment,
    full_environment,
    referenced_names,
)
from podstatus.runtime.process.spec.mount_plan import PlannedMount, plan_mounts, target_of
from podstatus.runtime.process.spec.security import Credentials, Possible, credentials
from podstatus.runtime.process.spec.unsupported_fields import check_fields
from podstatus.runtime.process.volumes.host_paths import PROC, read_mount_table
from podstatus.runtime.process.volumes.volume_manager import Volumes

DEFAULT_MESSAGE_PATH = "/dev/termination-log"
_HOSTNAME_LENGTH = 63
_EXEC_RESERVE = 64 * 1024
"""Bytes: PATH, HOME and HOSTNAME, and the words of the programs before the command."""
_NO_COMMAND = (
    "no command specified: an image is only a label here, and nothing of it runs; "
    "put a command into the spec"
)
_OLD_BUBBLEWRAP = (
    "this bubblewrap mounts by name only, and another pod may change what has the name; install "
    "one that has --bind-fd (0.10, or an update of your distribution since August 2024)"
)
_SANDBOX_HOME = "/tmp"  # noqa: S108 - its own, and the one place where it may surely write


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """How to start a container, as in `records.Launch`."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    bubblewrap: tuple[str, ...] | None = None
    host_paths: tuple[HostPathArgument, ...] = ()
    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] | None = None
    capabilities: tuple[int, ...] | None = None
    seccomp: bytes = b""
    message_path: str = ""

    def __repr__(self) -> str:
        return f"Command(argv={self.argv[:1]}, …)"


class Preparer:
    """Makes what pods and containers need before they are started."""

    def __init__(
        self,
        root: Path,
        *,
        bubblewrap: Bubblewrap | None,
        objects: PodObjects,
        host_ips: Callable[[], Sequence[str]],
        allocatable: Callable[[], Mapping[str, Quantity]],
        hidden: Sequence[Path],
        clock: Clock,
    ) -> None:
        """`root` has the pods' folders; `hidden` are files and folders for no container."""
        self._bubblewrap = bubblewrap
        self._references = References(objects, clock)
        self._host_ips = host_ips
        self._allocatable = allocatable
        self._hidden = tuple(os.path.realpath(path) for path in (root, *hidden))
        self._outside = Outside(root)
        self._volumes = Volumes(root, self._references, self._around, self._hidden, clock)

    async def prepare_pod(self, pod: Pod) -> None:
        """Make the volumes; what is there already is brought up to date.

        Raises CannotStartError.
        """
        if self._bubblewrap is not None:
            await self._volumes.make(pod, self._possible())

    async def refresh_pod(self, pod: Pod) -> None:
        """Let configMaps, secrets and tokens in volumes follow. Raises CannotStartError."""
        if self._bubblewrap is not None:
            await self._volumes.refresh(pod, self._possible())

    async def remove_pod(self, uid: PodUID) -> None:
        """Remove what lies outside of the pod's folder, before that itself is removed."""
        await self._volumes.forget(uid)
        self._references.forget(uid)
        await asyncio.to_thread(self._outside.remove, uid)

    def close(self) -> None:
        """Write to no volume any more."""
        self._volumes.close()

    async def prepare_container(
        self, pod: Pod, container: Container, place: ContainerFolder
    ) -> Command:
        """How to start a container, and what it needs made. Raises CannotStartError."""
        can = self._possible()
        check_fields(pod, container, isolated=can.isolated)
        if can.isolated:
            check_spec(container)
        who = credentials(pod, container, can)
        program = seccomp_program(pod, container, who, can)
        objects = await self._references.fetch(pod, *referenced_names(container))
        budget = ExecBudget(max_exec_bytes())
        declared = declared_environment(pod, container, objects, self._around(), budget)
        argv = _argv(container, declared, budget)
        if self._bubblewrap is None:
            return self._plain(pod, container, argv, declared, who, program)
        bubblewrap = self._bubblewrap
        return self._isolated(bubblewrap, pod, container, place, argv, declared, who, program)

    def _plain(
        self,
        pod: Pod,
        container: Container,
        argv: tuple[str, ...],
        declared: Mapping[str, str],
        who: Credentials,
        program: bytes,
    ) -> Command:
        own_folders(pod, container, declared, self._outside)
        env = full_environment(declared, hostname=socket.gethostname(), home=_home(who.user))
        changes = os.geteuid() == 0
        return Command(
            argv=argv,
            env=env,
            cwd=container.working_dir or "/",
            user=who.user if changes else None,
            group=who.group if changes else None,
            groups=who.groups,
            capabilities=capability_numbers(who.capabilities) if changes else None,
            seccomp=program,
            message_path=own_message(pod, container, self._outside, who),
        )

    def _isolated(
        self,
        bubblewrap: Bubblewrap,
        pod: Pod,
        container: Container,
        place: ContainerFolder,
        argv: tuple[str, ...],
        declared: Mapping[str, str],
        who: Credentials,
        program: bytes,
    ) -> Command:
        check_variables(declared)
        planned_mounts = plan_mounts(pod, container, declared)
        things = [self._placed(bubblewrap, pod, container, mount) for mount in planned_mounts]
        message = container.termination_message_path or DEFAULT_MESSAGE_PATH
        target = target_of(message, "terminationMessagePath")
        things.append(Placed(source=place.message, target=target))
        _make_own(place)
        hostname = "" if pod.spec.host_network else _hostname(pod)
        env = full_environment(
            declared, hostname=hostname or socket.gethostname(), home=_SANDBOX_HOME
        )
        builder = SandboxBuilder(pod, container, self._unseen())
        box = builder.build(things, tmp=place.tmp, env=env, hostname=hostname)
        switched = switch_user(bubblewrap.setpriv, who) if who.groups is not None else ()
        root = os.geteuid() == 0
        arguments = bubblewrap_args(bubblewrap.program, box, who, root=root)
        _check_words(arguments.words)
        check_arguments(arguments.words, (*switched, *argv), env, len(things))
        return Command(
            argv=(*switched, *argv),
            env=env,
            cwd="",
            bubblewrap=arguments.words,
            host_paths=_host_paths(arguments),
            capabilities=capability_numbers(kept_capabilities(who)) if root else None,
            seccomp=program,
            message_path=str(place.message),
        )

    def _placed(
        self, bubblewrap: Bubblewrap, pod: Pod, container: Container, planned: PlannedMount
    ) -> Placed:
        host_path = self._volumes.host_path(planned)
        if host_path is not None and not bubblewrap.binds_descriptors:
            raise not_honoured("volumes.hostPath.path", host_path.path, _OLD_BUBBLEWRAP)
        return Placed(
            source=Path(host_path.path)
            if host_path is not None
            else self._volumes.source(pod, planned, container.name),
            host_path=host_path,
            planned=planned,
            target=planned.target,
            read_only=planned.read_only,
        )

    def _unseen(self) -> tuple[str, ...]:
        """What no container sees: what is the agent's, wherever it is mounted, and each procfs."""
        table = read_mount_table()
        return (*table.places_of(self._hidden), *(m.point for m in table.of_kind(PROC)))

    def _around(self) -> Surroundings:
        return Surroundings(self._host_ips(), self._allocatable())

    def _possible(self) -> Possible:
        return Possible(
            user=os.geteuid(),
            group=os.getegid(),
            groups=tuple(os.getgroups()),
            isolated=self._bubblewrap is not None,
            switches_user=self._bubblewrap is not None and bool(self._bubblewrap.setpriv),
            machine=os.uname().machine,
            no_seccomp=_why_no_seccomp(),
        )


def _host_paths(arguments: BubblewrapArgs) -> tuple[HostPathArgument, ...]:
    return tuple(
        HostPathArgument(argument=position, path=found.path, device=found.device, inode=found.inode)
        for position, found in arguments.descriptors.items()
    )


def max_exec_bytes() -> int:
    """What is left for variables and arguments under this process's limit of the stack."""
    limit = os.sysconf("SC_ARG_MAX")
    return MAX_TOTAL_BYTES if limit <= 0 else min(MAX_TOTAL_BYTES, limit - _EXEC_RESERVE)


def _argv(container: Container, env: Mapping[str, str], budget: ExecBudget) -> tuple[str, ...]:
    """The command and its arguments; an image, which might have one, is only a label."""
    argv = []
    for field, words in (("command", container.command), ("args", container.args)):
        for number, word in enumerate(words or ()):
            try:
                argv.append(budget.expand(word, env))
            except ArgumentListTooLongError as error:
                raise config_error(f"{field}[{number}]: {error}; shorten it") from error
    if not argv:
        raise CannotStartError("CreateContainerError", _NO_COMMAND)
    _check_words((*argv, container.working_dir))
    return tuple(argv)


def _check_words(words: Sequence[str]) -> None:
    """A NUL ends an argument: what is behind it would be another one, of bubblewrap's as well."""
    if any("\0" in word for word in words):
        raise config_error("a command, an argument or a path has a NUL in it; leave it out")


def _make_own(place: ContainerFolder) -> None:
    """What only this attempt has: its /tmp, and the file for its last words.

    They are for any user, as the one that a container runs as may change; nobody but it gets here.
    """
    make_private(place.path)
    place.tmp.mkdir(exist_ok=True)
    place.tmp.chmod(0o1777)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    made = os.open(place.message, flags, 0o600)
    try:
        os.fchmod(made, 0o666)
    finally:
        os.close(made)


def _hostname(pod: Pod) -> str:
    """Upstream: GeneratePodHostNameAndDomain, kubelet_pods.go v1.36.4; without the domain."""
    name = pod.spec.hostname_override or pod.spec.hostname or pod.name
    return name[:_HOSTNAME_LENGTH].rstrip("-.") or "pod"


def _why_no_seccomp() -> str:
    try:
        find_architecture()
    except NoSeccompError as error:
        return str(error)
    return ""


def _home(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_dir
    except KeyError:
        return "/"
