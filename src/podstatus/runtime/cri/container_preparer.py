"""Finds and creates what pods and containers need before the runtime creates them.

Volumes, variables and references to objects are those of the process runtime.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from podstatus.base.clock import Clock
from podstatus.kube.expansion import ArgumentListTooLongError, ExecBudget
from podstatus.kube.objects.cluster import Secret
from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.cri.api.containers import CriMount
from podstatus.runtime.cri.api.images import CriImage
from podstatus.runtime.cri.api.sandboxes import CriDNSConfig, CriPodSandboxConfig
from podstatus.runtime.cri.model.container import ContainerInputs
from podstatus.runtime.cri.model.dns import parse_resolv_conf
from podstatus.runtime.cri.model.sandbox import pod_hostname, sandbox_config
from podstatus.runtime.cri.pod_files import PodFiles
from podstatus.runtime.process.reference_resolver import PodObjects, ReferenceResolver
from podstatus.runtime.process.service_links import ServiceLinks, Services
from podstatus.runtime.process.spec.config_errors import config_error
from podstatus.runtime.process.spec.downward_api import DownwardContext
from podstatus.runtime.process.spec.environment import declared_environment, referenced_names
from podstatus.runtime.process.spec.hosts_file import HOSTS_PATH, hosts_file, needs_hosts_file
from podstatus.runtime.process.spec.mount_plan import PlannedMount, plan_mounts
from podstatus.runtime.process.spec.security import HostSupport
from podstatus.runtime.process.volumes.memory_volumes import MemoryVolumes
from podstatus.runtime.process.volumes.volume_manager import VolumeManager

_RESOLV_CONF = Path("/etc/resolv.conf")


class CriContainerPreparer:
    """Prepares pods and containers. Not thread-safe: for one event loop."""

    def __init__(
        self,
        root: Path,
        *,
        objects: PodObjects,
        services: Services,
        host_ips: Callable[[], Sequence[str]],
        allocatable: Callable[[], Mapping[str, Quantity]],
        hidden: Sequence[Path],
        clock: Clock,
    ) -> None:
        """`root` holds the pods' files; `hidden` are paths that no container may see."""
        self.files = PodFiles(root)
        self._resolver = ReferenceResolver(objects, clock)
        self._links = ServiceLinks(services, clock)
        self._host_ips = host_ips
        self._allocatable = allocatable
        self._memory = MemoryVolumes(root)
        paths = tuple(os.path.realpath(path) for path in (root, *hidden))
        self._volumes = VolumeManager(
            root, self._resolver, self._volume_context, paths, self._memory, clock
        )

    async def prepare_pod(self, pod: Pod) -> None:
        """Create the pod's volumes and log folder. Raises CannotStartError."""
        await self._volumes.create_volumes(pod, _host_support())
        await asyncio.to_thread(self.files.create_log_directory, pod)

    async def sandbox_config(self, pod: Pod, attempt: int) -> CriPodSandboxConfig:
        """Return the configuration of a sandbox, with the machine's resolver as it is now."""
        return sandbox_config(
            pod,
            attempt=attempt,
            log_directory=str(self.files.log_directory(pod)),
            host_dns=await asyncio.to_thread(_host_dns),
        )

    async def refresh_pod(self, pod: Pod) -> None:
        """Update configMaps, secrets and tokens in volumes. Raises CannotStartError."""
        await self._volumes.refresh_volumes(pod, _host_support())

    async def pull_secrets(self, pod: Pod) -> tuple[Secret, ...]:
        """Return the secrets for pulling images; those that do not exist are left out.

        Raises CannotStartError if they cannot be read.
        """
        names = {reference.name for reference in pod.spec.image_pull_secrets or ()}
        objects = await self._resolver.fetch(pod, set(), names)
        return tuple(secret for secret in objects.secrets.values() if secret is not None)

    async def prepare_container(
        self,
        pod: Pod,
        container: Container,
        image: CriImage,
        *,
        pod_ips: Sequence[str],
        attempt: tuple[int, str],
        target_id: str,
    ) -> ContainerInputs:
        """Create a container's files and return its inputs. Raises CannotStartError.

        `attempt` is the restart count and the ID of the sandbox.
        """
        if pod.spec.host_network:
            pod_ips = self._host_ips()
        objects = await self._resolver.fetch(pod, *referenced_names(container))
        links = await self._links.variables(pod)
        context = DownwardContext(self._host_ips(), self._allocatable(), pod_ips)
        budget = ExecBudget()
        env = declared_environment(pod, container, objects, context, budget, links)
        mounts = await asyncio.to_thread(self._mounts, pod, container, env, pod_ips, attempt)
        return ContainerInputs(
            image=image,
            command=_expand("command", container.command, env, budget),
            args=_expand("args", container.args, env, budget),
            env=env,
            mounts=mounts,
            memory_capacity=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            target_id=target_id,
        )

    async def remove_pod(self, uid: PodUID) -> None:
        """Remove all files of a pod whose containers are gone."""
        await self._volumes.forget(uid)
        self._resolver.forget(uid)
        await asyncio.to_thread(self._memory.remove, uid)
        await asyncio.to_thread(self.files.remove_pod, uid)

    def close(self) -> None:
        """Stop all writers of volumes."""
        self._volumes.close()

    def _mounts(
        self,
        pod: Pod,
        container: Container,
        env: Mapping[str, str],
        pod_ips: Sequence[str],
        attempt: tuple[int, str],
    ) -> tuple[CriMount, ...]:
        self.files.create_log_directory(pod, container.name)
        planned = plan_mounts(pod, container, env)
        mounts = [self._volume_mount(pod, container, mount) for mount in planned]
        targets = [mount.target for mount in planned]
        if needs_hosts_file(pod, pod_ips, targets):
            host_file = _read(Path(HOSTS_PATH)) if pod.spec.host_network else ""
            text = hosts_file(pod, pod_hostname(pod), pod_ips, host_file)
            path = self.files.write_hosts(pod.uid, text)
            mounts.append(CriMount(container_path=HOSTS_PATH, host_path=str(path)))
        if target := container.termination_message_path:
            message = self.files.create_message(pod.uid, container.name, *attempt)
            mounts.append(CriMount(container_path=target, host_path=str(message)))
        return tuple(mounts)

    def _volume_mount(self, pod: Pod, container: Container, planned: PlannedMount) -> CriMount:
        host_path = self._volumes.host_path(planned)
        source = (
            host_path.path
            if host_path is not None
            else str(self._volumes.source(pod, planned, container.name))
        )
        return CriMount(container_path=planned.target, host_path=source, readonly=planned.read_only)

    def _volume_context(self) -> DownwardContext:
        return DownwardContext(self._host_ips(), self._allocatable())


def _expand(
    field: str, words: Iterable[str] | None, env: Mapping[str, str], budget: ExecBudget
) -> tuple[str, ...]:
    try:
        return tuple(budget.expand(word, env) for word in words or ())
    except ArgumentListTooLongError as error:
        raise config_error(f"{field}: {error}; shorten it") from error


def _host_support() -> HostSupport:
    return HostSupport(user=os.geteuid(), group=os.getegid(), isolated=True)


def _host_dns() -> CriDNSConfig:
    return parse_resolv_conf(_read(_RESOLV_CONF))


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="surrogateescape")
    except FileNotFoundError:
        return ""
