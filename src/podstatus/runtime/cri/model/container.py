"""The configuration of a container.

Upstream: generateContainerConfig, kuberuntime/kuberuntime_container.go v1.36.4.
"""

from collections.abc import Mapping

import msgspec

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.cri.api.containers import (
    CriContainerConfig,
    CriContainerMetadata,
    CriKeyValue,
    CriLinuxContainerConfig,
    CriMount,
)
from podstatus.runtime.cri.api.images import CriImage, CriImageSpec
from podstatus.runtime.cri.model.labels import container_annotations, container_labels
from podstatus.runtime.cri.model.resources import linux_resources
from podstatus.runtime.cri.model.security import container_security


class ContainerInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What was found or created for a container before it is created."""

    image: CriImage
    command: tuple[str, ...]
    """The expanded command; empty for the entrypoint of the image."""
    args: tuple[str, ...]
    env: Mapping[str, str]
    mounts: tuple[CriMount, ...]
    memory_capacity: int
    """Memory of the machine, bytes."""
    target_id: str = ""
    """The container whose processes an ephemeral container sees."""


def container_config(
    pod: Pod, container: Container, inputs: ContainerInputs, *, restart_count: int
) -> CriContainerConfig:
    """Return what CreateContainer needs. Raises CannotStartError."""
    return CriContainerConfig(
        metadata=CriContainerMetadata(name=container.name, attempt=restart_count),
        image=CriImageSpec(image=inputs.image.id, user_specified_image=container.image),
        command=inputs.command,
        args=inputs.args,
        working_dir=container.working_dir,
        envs=tuple(
            CriKeyValue(key=name, value=value.encode(errors="surrogateescape"))
            for name, value in inputs.env.items()
        ),
        mounts=inputs.mounts,
        labels=container_labels(pod, container),
        annotations=container_annotations(pod, container, restart_count),
        log_path=log_path(container.name, restart_count),
        stdin=container.stdin,
        stdin_once=container.stdin_once,
        tty=container.tty,
        linux=CriLinuxContainerConfig(
            resources=linux_resources(pod, container, memory_capacity=inputs.memory_capacity),
            security_context=container_security(
                pod, container, inputs.image, target_id=inputs.target_id
            ),
        ),
    )


def log_path(container: str, restart_count: int) -> str:
    """Return the path of an attempt's log below the log folder of its pod."""
    return f"{container}/{restart_count}.log"
