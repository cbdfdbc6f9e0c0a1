"""What becomes of a simulated pod that is given other resources."""

from collections.abc import Iterator, Mapping

from msgspec import structs

from podstatus.kube.objects.containers import Container
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.port import CannotResizeError
from podstatus.runtime.resource_limits import pod_limits
from podstatus.runtime.simulated.model.container import Attempt
from podstatus.runtime.simulated.model.container_start import resized
from podstatus.runtime.simulated.model.pod_record import PodRecord
from podstatus.runtime.simulated.model.script import NEVER


def resize_length(
    record: PodRecord, pod: Pod, containers: Mapping[str, str], now: int
) -> int | None:
    """How long it takes, as the scripts of these attempts say; None: it never ends.

    Raises CannotResizeError if one of them cannot be resized.
    """
    length = 0
    for _, attempt in _running(record, pod, containers, now):
        if attempt.script.resize_fails:
            raise CannotResizeError(f"container {attempt.name!r}: its script says resize=fail")
        if attempt.script.resize is None:
            return NEVER
        length = max(length, attempt.script.resize)
    return length


def resized_record(
    record: PodRecord, pod: Pod, containers: Mapping[str, str], now: int
) -> PodRecord:
    """The pod as a whole, and these attempts, with what the pod asks for now."""
    for container, attempt in _running(record, pod, containers, now):
        record = record.replacing(resized(attempt, container))
    return structs.replace(record, limits=pod_limits(pod))


def _running(
    record: PodRecord, pod: Pod, containers: Mapping[str, str], now: int
) -> Iterator[tuple[Container, Attempt]]:
    """Those of these attempts that run, with what they are attempts at."""
    running = {attempt.id: attempt for attempt in record.running(now)}
    for container in (*(pod.spec.init_containers or ()), *(pod.spec.containers or ())):
        attempt = running.get(containers.get(container.name, ""))
        if attempt is not None:
            yield container, attempt
