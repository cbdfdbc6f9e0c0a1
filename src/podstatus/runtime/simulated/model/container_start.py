"""Creation of an attempt from a container's spec and script, and the errors of failed starts."""

import hashlib

from msgspec import structs

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.containers import Container, Probe
from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.simulated.model.container_timeline import (
    LIVENESS,
    READINESS,
    STARTUP,
    ProbeName,
    SimulatedAttempt,
)
from podstatus.runtime.simulated.model.pod_record import SimulatedSandbox
from podstatus.runtime.simulated.model.script import START_ERROR, Script

_USED_FRACTION = 0.5
"""Fraction of its requests that a container uses unless its script says otherwise."""
_MIN_CPU_CORES = 0.005
_MIN_MEMORY_BYTES = 16 * 2**20


def new_attempt(
    container: Container,
    script: Script,
    sandbox: SimulatedSandbox,
    *,
    id: str,
    restart_count: int,
    began: int,
) -> SimulatedAttempt:
    """Return an attempt that starts at `began`."""
    failure = start_failure(container, script) if script.fail == START_ERROR else None
    return SimulatedAttempt(
        id=id,
        name=container.name,
        sandbox=sandbox.id,
        restart_count=restart_count,
        image=container.image,
        image_ref=image_ref(container.image),
        script=script,
        began=began,
        probes=_probes(container),
        cpu_cores=_cpu_cores(container, script),
        memory_bytes=_memory_bytes(container, script),
        resources=to_document(container.resources),
        start_error="" if failure is None else failure.message,
    )


def resize_attempt(attempt: SimulatedAttempt, container: Container) -> SimulatedAttempt:
    """Return the attempt with the resources of the container's current spec."""
    return structs.replace(
        attempt,
        cpu_cores=_cpu_cores(container, attempt.script),
        memory_bytes=_memory_bytes(container, attempt.script),
        resources=to_document(container.resources),
    )


def start_failure(container: Container, script: Script) -> CannotStartError:
    """Return the error for a container whose script has `fail`."""
    if script.fail == START_ERROR:
        message = f"failed to start container {container.name!r}: its script has fail=StartError"
        return CannotStartError("RunContainerError", script.message or message)
    message = f"container {container.name!r} cannot be started: its script has fail={script.fail}"
    if script.fail == "ErrImageNeverPull":
        # Upstream: EnsureImageExists, images/image_manager.go v1.36.4.
        message = f'Container image "{container.image}" is not present with pull policy of Never'
    return CannotStartError(script.fail, script.message or message)


def image_ref(image: str) -> str:
    """Return the image with a digest; the digest is of the name, as there is no content."""
    return f"{image}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def _probes(container: Container) -> tuple[ProbeName, ...]:
    probes: dict[ProbeName, Probe | None] = {
        STARTUP: container.startup_probe,
        READINESS: container.readiness_probe,
        LIVENESS: container.liveness_probe,
    }
    return tuple(name for name, probe in probes.items() if probe is not None)


def _cpu_cores(container: Container, script: Script) -> float:
    if script.cpu_cores is not None:
        return script.cpu_cores
    return max(_MIN_CPU_CORES, _USED_FRACTION * _requested(container, "cpu"))


def _memory_bytes(container: Container, script: Script) -> int:
    if script.memory_bytes is not None:
        return script.memory_bytes
    return max(_MIN_MEMORY_BYTES, round(_USED_FRACTION * _requested(container, "memory")))


def _requested(container: Container, resource: str) -> float:
    amount = (container.resources.requests or {}).get(resource, Quantity("0"))
    try:
        return amount.nanos / 1e9
    except (QuantityError, OverflowError):
        return 0.0
