"""Build the container runtime of `--runtime`: process, cri, simulated, or a class `module:Class`.

A class such as `my_runtime:MyRuntime` is imported and called with the directory for its records.
"""

import hashlib
import importlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import structs

from podstatus import __version__
from podstatus.agent.compose.cri_runtime import build_cri_runtime
from podstatus.agent.errors import EXIT_CONFIG, AgentError
from podstatus.agent.settings.model import AgentSettings
from podstatus.agent.settings.schema.scalars import CRI, PROCESS
from podstatus.base.clock import Clock
from podstatus.client import ApiClient
from podstatus.client.auth.in_cluster_config import SERVICE_ACCOUNT
from podstatus.client.auth.load_kubeconfig import load_kubeconfig
from podstatus.client.typed.pod_references import HttpPodObjects
from podstatus.events import reasons
from podstatus.events.object_references import container_reference, pod_reference
from podstatus.events.recorder import EventRecorder
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.cri.container_preparer import CriContainerPreparer
from podstatus.runtime.port import Runtime, RuntimeDownError
from podstatus.runtime.process.cgroups.discovery import CgroupsUnavailableError, find_cgroups
from podstatus.runtime.process.cgroups.enforcer import OnUnlimited
from podstatus.runtime.process.cgroups.pod_cgroups import Cgroups, unavailable_cgroups
from podstatus.runtime.process.launch_preparer import ContainerPreparer
from podstatus.runtime.process.process_runtime import ProcessRuntime
from podstatus.runtime.process.records.launch import LogLimits
from podstatus.runtime.process.sandbox.isolation import (
    Bubblewrap,
    BubblewrapUnavailableError,
    Isolation,
    SeccompUnavailableError,
    find_architecture,
    find_bubblewrap,
)
from podstatus.runtime.process.service_links import Services
from podstatus.runtime.simulated.simulated_runtime import SimulatedRuntime

logger = logging.getLogger(__name__)

_AUTO = "auto"
_LIMITED_RESOURCES = ("cpu", "memory")
_CGROUP_PREFIX = "podstatus-"
_MAX_NODE_NAME = 150
"""Maximum length of the node name within a cgroup name, whose limit is 200."""


class RuntimeDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """What the runtime needs from the rest of the agent."""

    settings: AgentSettings
    folder: Path
    """Directory for the runtime's records."""
    client: ApiClient
    services: Services
    """The Services of the cluster, for the environment of containers."""
    recorder: EventRecorder
    host_ips: Callable[[], Sequence[str]]
    allocatable: Callable[[], Mapping[str, Quantity]]
    clock: Clock


def build_runtime(dependencies: RuntimeDependencies) -> Runtime:
    """Build the runtime of `--runtime`. Raises AgentError."""
    if dependencies.settings.runtime == PROCESS:
        return build_process_runtime(dependencies)
    if dependencies.settings.runtime == CRI:
        return build_cri_runtime(
            dependencies.settings, _cri_preparer(dependencies), dependencies.clock
        )
    return find_runtime(dependencies.settings.runtime, dependencies.folder, dependencies.clock)


def build_process_runtime(dependencies: RuntimeDependencies) -> ProcessRuntime:
    """Build the runtime that runs containers as local processes. Raises AgentError."""
    settings = dependencies.settings
    bubblewrap = find_isolation(settings.isolation)
    if bubblewrap is not None:
        allowed = settings.allow_unconfined_seccomp
        bubblewrap = structs.replace(bubblewrap, allows_unconfined=allowed)
    _warn_without_seccomp()
    preparer = ContainerPreparer(
        dependencies.folder,
        bubblewrap=bubblewrap,
        objects=HttpPodObjects(dependencies.client),
        services=dependencies.services,
        host_ips=dependencies.host_ips,
        allocatable=dependencies.allocatable,
        hidden=secret_files(settings),
        clock=dependencies.clock,
    )
    try:
        return ProcessRuntime(
            dependencies.folder,
            preparer,
            version=__version__,
            host_ips=dependencies.host_ips,
            clock=dependencies.clock,
            log_limits=LogLimits(
                max_bytes=settings.container_log_max_size,
                max_files=settings.container_log_max_files,
            ),
            cgroups=_find_cgroups(settings),
            on_unlimited=_limits_reporter(dependencies.recorder),
        )
    except RuntimeDownError as error:
        raise AgentError(str(error), code=EXIT_CONFIG) from error


def _cri_preparer(dependencies: RuntimeDependencies) -> CriContainerPreparer:
    return CriContainerPreparer(
        dependencies.folder,
        objects=HttpPodObjects(dependencies.client),
        services=dependencies.services,
        host_ips=dependencies.host_ips,
        allocatable=dependencies.allocatable,
        hidden=secret_files(dependencies.settings),
        clock=dependencies.clock,
    )


async def open_process_runtime(runtime: ProcessRuntime) -> None:
    """Recover the pods of previous agents.

    Raises AgentError. Its exit code lets a supervisor try again: the disk may be busy.
    """
    try:
        await runtime.open()
    except (RuntimeDownError, OSError) as error:
        raise AgentError(f"cannot recover the pods of a previous agent: {error}") from error


def secret_files(settings: AgentSettings) -> list[Path]:
    """Return the files to hide from containers.

    A container that runs as the agent's user could impersonate the agent with their content.
    """
    paths = [settings.root_dir, settings.kubeconfig, settings.tls_private_key_file]
    if settings.kubeconfig is not None:
        users = load_kubeconfig(settings.kubeconfig, {}).users.values()
        paths += [Path(path) for user in users for path in user.secret_files]
    if settings.in_cluster:
        paths.append(SERVICE_ACCOUNT)
    return [path for path in paths if path is not None]


def find_isolation(mode: str) -> Bubblewrap | None:
    """Return bubblewrap, None for no isolation. Raises AgentError if `mode` is not possible."""
    if mode == Isolation.NONE.value:
        return None
    try:
        return find_bubblewrap()
    except BubblewrapUnavailableError as error:
        if mode != _AUTO:
            raise AgentError(f"--isolation: {error}", code=EXIT_CONFIG) from error
        logger.warning("pods are not isolated from this machine: error=%s", error)
        return None


def _warn_without_seccomp() -> None:
    try:
        find_architecture()
    except SeccompUnavailableError as error:
        logger.warning("seccomp filters are not available: error=%s", error)


def cgroups_name(node_name: str, root_dir: Path) -> str:
    """Return the name of the cgroup of all pods of an agent.

    It contains a digest of the root directory, which is unique per agent: agents on one machine
    may have the same node name (by default the hostname), and each removes unknown cgroups
    below its own.
    """
    return f"{_CGROUP_PREFIX}{node_name[:_MAX_NODE_NAME]}{_cgroup_suffix(root_dir)}"


def _cgroup_suffix(root_dir: Path) -> str:
    return f"-{hashlib.sha256(bytes(root_dir.resolve())).hexdigest()[:12]}"


def leftover_cgroups(root_dir: Path, files: Iterable[str]) -> Cgroups:
    """Return the cgroups of an agent that has ended, by the cgroup files of its containers."""
    suffix = _cgroup_suffix(root_dir)
    parts = {part for file in files for part in Path(file).parts}
    for name in sorted(parts):
        if name.startswith(_CGROUP_PREFIX) and name.endswith(suffix):
            with suppress(CgroupsUnavailableError):
                return find_cgroups(name)
    return unavailable_cgroups("no container has a cgroup")


def _find_cgroups(settings: AgentSettings) -> Cgroups:
    try:
        cgroups = find_cgroups(cgroups_name(settings.node_name, settings.root_dir))
    except CgroupsUnavailableError as error:
        logger.info("resource limits are not enforced: reason=%s", error)
        return unavailable_cgroups(str(error))
    missing = cgroups.missing
    if problems := {missing[name] for name in _LIMITED_RESOURCES if name in missing}:
        reason = "; ".join(sorted(problems))
        logger.info("some resource limits are not enforced: reason=%s", reason)
    return cgroups


def _limits_reporter(recorder: EventRecorder) -> OnUnlimited:
    def report(pod: Pod, container: str | None, reason: str) -> None:
        about = pod_reference(pod) if container is None else container_reference(pod, container)
        kind = "Pod" if container is None else "Container"
        message = f"{kind} runs without some of its resource limits: {reason}"
        recorder.warn(about, reasons.LIMITS_NOT_ENFORCED, message)

    return report


def find_runtime(name: str, folder: Path, clock: Clock) -> Runtime:
    """Build the simulated runtime or a custom class by name. Raises AgentError."""
    try:
        if ":" not in name:
            return SimulatedRuntime(clock, folder=folder)
        return _load_runtime_class(name, folder)
    except RuntimeDownError as error:
        raise AgentError(str(error), code=EXIT_CONFIG) from error


def _load_runtime_class(name: str, folder: Path) -> Runtime:
    module, _, attribute = name.partition(":")
    try:
        make = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise _runtime_error(
            name, f"{error}; pass a module on PYTHONPATH and a class in it: my_runtime:MyRuntime"
        ) from error
    try:
        runtime: Runtime = make(folder)
    except RuntimeDownError:
        raise
    except Exception as error:
        raise _runtime_error(
            name,
            f"{type(error).__name__}: {error}; the class is called with the directory for its "
            "records",
        ) from error
    names = [n for n in vars(Runtime) if not n.startswith("_")]
    if missing := [n for n in names if not hasattr(runtime, n)]:
        raise _runtime_error(
            name, f"it does not implement {', '.join(missing)}; see docs/reference/runtime-port.md"
        )
    return runtime


def _runtime_error(name: str, reason: str) -> AgentError:
    return AgentError(f"--runtime: cannot use {name}: {reason}", code=EXIT_CONFIG)
