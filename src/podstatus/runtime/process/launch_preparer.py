"""Translation of a pod's spec into a command that the shim can start."""

import asyncio
import base64
import os
import pwd
import shlex
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.kube.expansion import MAX_TOTAL_BYTES, ArgumentListTooLongError, ExecBudget
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.scalars.go_text import go_quoted
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.paths.safe_paths import create_private, open_descriptor
from podstatus.runtime.process.records.layout import ContainerFolder
from podstatus.runtime.process.records.models import ExecContext, PreparedCommand
from podstatus.runtime.process.reference_resolver import PodObjects, ReferenceResolver
from podstatus.runtime.process.sandbox.bubblewrap.arguments import (
    bubblewrap_args,
    check_arguments,
    check_spec,
    check_variables,
    retained_capabilities,
    setpriv_args,
)
from podstatus.runtime.process.sandbox.builder import ResolvedMount, SandboxBuilder
from podstatus.runtime.process.sandbox.isolation import (
    Bubblewrap,
    Isolation,
    SeccompUnavailableError,
    find_architecture,
)
from podstatus.runtime.process.seccomp.selection import seccomp_program
from podstatus.runtime.process.service_links import ServiceLinks, Services
from podstatus.runtime.process.spec.capabilities import capability_numbers
from podstatus.runtime.process.spec.config_errors import config_error, unsupported_field
from podstatus.runtime.process.spec.downward_api import DownwardContext
from podstatus.runtime.process.spec.environment import (
    declared_environment,
    full_environment,
    referenced_names,
)
from podstatus.runtime.process.spec.hosts_file import HOSTS_PATH, hosts_file, needs_hosts_file
from podstatus.runtime.process.spec.mount_plan import PlannedMount, mount_target, plan_mounts
from podstatus.runtime.process.spec.security import HostSupport, ProcessCredentials, credentials
from podstatus.runtime.process.spec.sysctls import ipc_sysctls
from podstatus.runtime.process.spec.unsupported_fields import check_fields
from podstatus.runtime.process.volumes.host_paths import PROC, read_mount_table
from podstatus.runtime.process.volumes.memory_volumes import MemoryVolumes
from podstatus.runtime.process.volumes.unsandboxed_files import (
    UnsandboxedFiles,
    create_folders,
    create_message_file,
)
from podstatus.runtime.process.volumes.volume_manager import VolumeManager

DEFAULT_MESSAGE_PATH = "/dev/termination-log"
_MAX_HOSTNAME_LENGTH = 63
_EXEC_RESERVED_BYTES = 64 * 1024
_EXAMPLE_COMMAND = "sh -c 'trap exit TERM; sleep infinity & wait'"
"""Handles SIGTERM: PID 1 of a pid namespace ignores it otherwise, until the grace period ends."""
"""Reserved for PATH, HOME, HOSTNAME, TERM and the arguments of the wrapper programs."""
_OLD_BUBBLEWRAP = (
    "this bubblewrap mounts by path only, and another pod may replace what is at the path; install "
    "one with --bind-fd (0.10, or a distribution update since August 2024)"
)
_SANDBOX_HOME = "/tmp"  # noqa: S108 - private to the container, and always writable


class ContainerPreparer:
    """Creates what pods and containers need before they are started."""

    def __init__(
        self,
        root: Path,
        *,
        bubblewrap: Bubblewrap | None,
        objects: PodObjects,
        services: Services,
        host_ips: Callable[[], Sequence[str]],
        allocatable: Callable[[], Mapping[str, Quantity]],
        hidden: Sequence[Path],
        clock: Clock,
    ) -> None:
        """`root` holds the pods' folders; `hidden` are paths that no container may see."""
        self._bubblewrap = bubblewrap
        self._resolver = ReferenceResolver(objects, clock)
        self._links = ServiceLinks(services, clock)
        self._host_ips = host_ips
        self._allocatable = allocatable
        self._hidden = tuple(os.path.realpath(path) for path in (root, *hidden))
        self._memory = MemoryVolumes(root)
        self._unsandboxed_files = UnsandboxedFiles(root)
        self._volumes = VolumeManager(
            root, self._resolver, self._downward_context, self._hidden, self._memory, clock
        )

    @property
    def isolation(self) -> Isolation:
        """How containers are isolated from the machine."""
        return Isolation.NONE if self._bubblewrap is None else Isolation.BUBBLEWRAP

    async def prepare_pod(self, pod: Pod) -> None:
        """Create the pod's volumes, or update existing ones.

        Raises CannotStartError.
        """
        if self._bubblewrap is not None:
            await self._volumes.create_volumes(pod, self._host_support())

    async def refresh_pod(self, pod: Pod) -> None:
        """Update configMaps, secrets and tokens in volumes. Raises CannotStartError."""
        if self._bubblewrap is not None:
            await self._volumes.refresh_volumes(pod, self._host_support())

    async def remove_pod(self, uid: PodUID) -> None:
        """Remove what lies outside of the pod's folder; call before removing the folder."""
        await self._volumes.forget(uid)
        self._resolver.forget(uid)
        await asyncio.to_thread(self._unsandboxed_files.remove, uid)
        await asyncio.to_thread(self._memory.remove, uid)

    def close(self) -> None:
        """Stop all writers of volumes."""
        self._volumes.close()

    async def prepare_container(
        self, pod: Pod, container: Container, directory: ContainerFolder
    ) -> PreparedCommand:
        """Create a container's files and return how to start it. Raises CannotStartError."""
        host = self._host_support()
        check_fields(pod, container, isolated=host.isolated)
        if host.isolated:
            check_spec(container)
        run_as = credentials(pod, container, host)
        program = base64.b64encode(seccomp_program(pod, container, run_as, host)).decode()
        sysctls = ipc_sysctls(pod, host)
        links = await self._links.variables(pod)
        objects = await self._resolver.fetch(pod, *referenced_names(container))
        context, budget = self._downward_context(), ExecBudget(max_exec_bytes())
        declared = declared_environment(pod, container, objects, context, budget, links)
        argv = _argv(container, declared, budget)
        if self._bubblewrap is None:
            command = self._unsandboxed_command(pod, container, argv, declared, run_as)
        else:
            command = self._sandboxed_command(
                self._bubblewrap, pod, container, directory, argv, declared, run_as, sysctls
            )
        return structs.replace(command, seccomp=program)

    def _unsandboxed_command(
        self,
        pod: Pod,
        container: Container,
        argv: tuple[str, ...],
        declared: Mapping[str, str],
        run_as: ProcessCredentials,
    ) -> PreparedCommand:
        create_folders(pod, container, declared, self._unsandboxed_files)
        hostname, home = socket.gethostname(), _home(run_as.user)
        env = full_environment(declared, hostname=hostname, home=home, tty=container.tty)
        is_root = os.geteuid() == 0
        context = ExecContext(
            cwd=container.working_dir or "/",
            user=run_as.user if is_root else None,
            group=run_as.group if is_root else None,
            groups=run_as.groups,
            capabilities=capability_numbers(run_as.capabilities) if is_root else None,
        )
        return PreparedCommand(
            argv=argv,
            env=env,
            cwd=context.cwd,
            user=context.user,
            group=context.group,
            groups=context.groups,
            capabilities=context.capabilities,
            exec_context=context,
            message_path=create_message_file(pod, container, self._unsandboxed_files, run_as),
        )

    def _sandboxed_command(
        self,
        bubblewrap: Bubblewrap,
        pod: Pod,
        container: Container,
        directory: ContainerFolder,
        argv: tuple[str, ...],
        declared: Mapping[str, str],
        run_as: ProcessCredentials,
        sysctls: Mapping[str, str],
    ) -> PreparedCommand:
        check_variables(declared)
        planned_mounts = plan_mounts(pod, container, declared)
        mounts = [
            self._resolve_mount(bubblewrap, pod, container, mount) for mount in planned_mounts
        ]
        message = container.termination_message_path or DEFAULT_MESSAGE_PATH
        target = mount_target(message, "terminationMessagePath")
        mounts.append(ResolvedMount(source=directory.message, target=target))
        _create_container_files(directory)
        hostname = "" if pod.spec.host_network else _hostname(pod)
        targets = (mount.target for mount in mounts)
        mounts.extend(_hosts_file_mounts(pod, hostname, self._host_ips(), targets, directory))
        env = full_environment(
            declared,
            hostname=hostname or socket.gethostname(),
            home=_SANDBOX_HOME,
            tty=container.tty,
        )
        builder = SandboxBuilder(pod, container, self._hidden_paths())
        sandbox = builder.build(
            mounts, tmp=directory.tmp, env=env, hostname=hostname, inherit_ipc=bool(sysctls)
        )
        setpriv = setpriv_args(bubblewrap.setpriv, run_as) if run_as.groups is not None else ()
        root = os.geteuid() == 0
        capabilities = capability_numbers(retained_capabilities(run_as)) if root else None
        arguments = bubblewrap_args(bubblewrap.program, sandbox, run_as, root=root)
        _check_arguments(arguments.argv)
        check_arguments(arguments.argv, (*setpriv, *argv), env, len(mounts))
        return PreparedCommand(
            argv=(*setpriv, *argv),
            env=env,
            cwd="",
            bubblewrap=arguments.argv,
            host_paths=arguments.host_paths,
            setsid=bubblewrap.setsid if container.tty else "",
            capabilities=capabilities,
            exec_context=_sandboxed_exec_context(sandbox.cwd, run_as, capabilities or ()),
            sysctls=dict(sysctls),
            message_path=str(directory.message),
        )

    def _resolve_mount(
        self, bubblewrap: Bubblewrap, pod: Pod, container: Container, planned: PlannedMount
    ) -> ResolvedMount:
        host_path = self._volumes.host_path(planned)
        if host_path is not None and not bubblewrap.supports_bind_fd:
            raise unsupported_field("volumes.hostPath.path", host_path.path, _OLD_BUBBLEWRAP)
        return ResolvedMount(
            source=Path(host_path.path)
            if host_path is not None
            else self._volumes.source(pod, planned, container.name),
            host_path=host_path,
            planned=planned,
            target=planned.target,
            read_only=planned.read_only,
        )

    def _hidden_paths(self) -> tuple[str, ...]:
        """Return paths that no container may see: the agent's, at every mount, and each procfs."""
        table = read_mount_table()
        return (*table.visible_paths(self._hidden), *(m.mount_point for m in table.of_type(PROC)))

    def _downward_context(self) -> DownwardContext:
        return DownwardContext(self._host_ips(), self._allocatable())

    def _host_support(self) -> HostSupport:
        return HostSupport(
            user=os.geteuid(),
            group=os.getegid(),
            groups=tuple(os.getgroups()),
            isolated=self._bubblewrap is not None,
            can_switch_user=self._bubblewrap is not None and bool(self._bubblewrap.setpriv),
            machine=os.uname().machine,
            seccomp_unavailable=_seccomp_unavailable_reason(),
            allows_unconfined=self._bubblewrap is not None and self._bubblewrap.allows_unconfined,
        )


def _sandboxed_exec_context(
    cwd: str, run_as: ProcessCredentials, capabilities: tuple[int, ...]
) -> ExecContext:
    if run_as.groups is None:
        return ExecContext(cwd=cwd, capabilities=capabilities)
    return ExecContext(
        cwd=cwd,
        user=run_as.user,
        group=run_as.group,
        groups=run_as.groups,
        # The capabilities needed to switch the user are lost with the switch from root.
        capabilities=() if run_as.user else capabilities,
    )


def max_exec_bytes() -> int:
    """Bytes available for environment and arguments under this process's stack limit."""
    limit = os.sysconf("SC_ARG_MAX")
    return MAX_TOTAL_BYTES if limit <= 0 else min(MAX_TOTAL_BYTES, limit - _EXEC_RESERVED_BYTES)


def _argv(container: Container, env: Mapping[str, str], budget: ExecBudget) -> tuple[str, ...]:
    """Return the expanded command and arguments. An image's entrypoint is never used."""
    argv = []
    for field, values in (("command", container.command), ("args", container.args)):
        for number, value in enumerate(values or ()):
            try:
                argv.append(budget.expand(value, env))
            except ArgumentListTooLongError as error:
                raise config_error(f"{field}[{number}]: {error}; shorten it") from error
    if not argv:
        raise _no_command(container)
    _check_arguments((*argv, container.working_dir))
    return tuple(argv)


def _no_command(container: Container) -> CannotStartError:
    # The reason is that of containerd for an image without a command.
    name, image = shlex.quote(container.name), shlex.quote(container.image)
    return CannotStartError(
        "CreateContainerError",
        f"the process runtime has no images: container {go_quoted(container.name)} needs command "
        "or args that name a program on this machine; delete the pod and set them, e.g. "
        f"kubectl run {name} --image={image} --command -- {_EXAMPLE_COMMAND}",
    )


def _check_arguments(arguments: Sequence[str]) -> None:
    """Reject NUL: it ends an argument, so the rest would become another, even of bubblewrap."""
    if any("\0" in argument for argument in arguments):
        raise config_error("a command, an argument or a path contains a NUL character; remove it")


def _create_container_files(directory: ContainerFolder) -> None:
    """Create the attempt's own files: its /tmp and its termination message file.

    World-writable, as the container's user may change; the parent folder is private.
    """
    create_private(directory.path)
    directory.tmp.mkdir(exist_ok=True)
    directory.tmp.chmod(0o1777)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open_descriptor(directory.message, flags) as file:
        os.fchmod(file, 0o666)


def _hosts_file_mounts(
    pod: Pod,
    hostname: str,
    pod_ips: Sequence[str],
    targets: Iterable[str],
    directory: ContainerFolder,
) -> Iterator[ResolvedMount]:
    """Write the container's hosts file and yield its mount, if it gets one."""
    if not needs_hosts_file(pod, pod_ips, targets):
        return
    host_file = _read_host_file() if pod.spec.host_network else ""
    directory.hosts.write_text(
        hosts_file(pod, hostname, pod_ips, host_file), errors="surrogateescape"
    )
    directory.hosts.chmod(0o644)
    # As the root filesystem, which is read-only.
    yield ResolvedMount(source=directory.hosts, target=HOSTS_PATH, read_only=True)


def _read_host_file() -> str:
    try:
        return Path(HOSTS_PATH).read_text(errors="surrogateescape")
    except FileNotFoundError:
        return ""


def _hostname(pod: Pod) -> str:
    """Return the hostname of a pod, without a domain.

    Upstream: GeneratePodHostNameAndDomain, kubelet_pods.go v1.36.4.
    """
    name = pod.spec.hostname_override or pod.spec.hostname or pod.name
    return name[:_MAX_HOSTNAME_LENGTH].rstrip("-.") or "pod"


def _seccomp_unavailable_reason() -> str:
    try:
        find_architecture()
    except SeccompUnavailableError as error:
        return str(error)
    return ""


def _home(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_dir
    except KeyError:
        return "/"
