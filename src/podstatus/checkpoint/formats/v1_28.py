"""The checkpoint of the status manager of v1.28: container requests and resize statuses.

    {"allocationEntries":{"<pod UID>":{"app":{"cpu":"2"}}},"checksum":336459229}

The checksum is that of a dump of the Go struct, which includes the in-memory representation of
quantities. So a file that was written from a non-canonical quantity (`0.5`) is rejected when it is
read, here as upstream. Upstream: status/state/checkpoint.go v1.28.0, util/hash/hash.go.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from msgspec import field, structs

from podstatus.checkpoint.formats.checksum import fnv1a_32
from podstatus.checkpoint.formats.go_json_decode import decode_onto
from podstatus.checkpoint.formats.go_json_encode import encode_go_json
from podstatus.checkpoint.formats.go_json_scanner import MalformedError
from podstatus.kube.encoding.wire_struct import Wire
from podstatus.kube.objects.allocation import Allocations, PodResourceInfo
from podstatus.kube.objects.containers import ResourceRequirements
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.go_text import valid_text
from podstatus.kube.scalars.quantity import Quantity

V = TypeVar("V")
NullableResourceList: TypeAlias = dict[str, Quantity | None]
"""None is a null as Go decodes it: a quantity that prints as 0 and has no format."""

_NO_DECIMAL = "(*inf.Dec)<nil>"
_WORD_BITS = 64


class UnsupportedFieldError(ValueError):
    """The format has no field for a value; the message names it."""


class PodResourceAllocationCheckpoint(Wire, frozen=True, kw_only=True):
    """Content of the file. None and an empty map differ: Go's checksum distinguishes them."""

    allocation_entries: dict[str, dict[str, NullableResourceList | None] | None] | None = None
    resize_status_entries: dict[str, str] | None = None
    checksum: int = field(default_factory=int)


def encode_checkpoint(allocations: Allocations) -> bytes:
    """Encode a state as the text of the file. Raises UnsupportedFieldError."""
    if allocations.actuated:
        raise UnsupportedFieldError("a checkpoint of v1.28 has no actuated resources")
    checkpoint = PodResourceAllocationCheckpoint(
        allocation_entries={
            str(uid): _container_requests(uid, info) for uid, info in allocations.allocated.items()
        },
        resize_status_entries={str(u): status for u, status in allocations.resize_statuses.items()},
    )
    sealed = structs.replace(checkpoint, checksum=_checksum(checkpoint))
    return encode_go_json(sealed).encode()


def decode_checkpoint(text: bytes) -> Allocations:
    """Decode the text of a file. Raises MalformedError."""
    empty = PodResourceAllocationCheckpoint(allocation_entries={}, resize_status_entries={})
    checkpoint = decode_onto(text, empty)
    actual = _checksum(checkpoint)
    if checkpoint.checksum != actual:
        raise MalformedError(f"its checksum is {checkpoint.checksum}, its content has {actual}")
    return Allocations(
        allocated={
            PodUID(uid): _resource_info(containers or {})
            for uid, containers in (checkpoint.allocation_entries or {}).items()
        },
        resize_statuses={
            PodUID(uid): status for uid, status in (checkpoint.resize_status_entries or {}).items()
        },
    )


def _container_requests(uid: str, info: PodResourceInfo) -> dict[str, NullableResourceList | None]:
    if info.pod_level_resources is not None:
        raise UnsupportedFieldError(f"a checkpoint of v1.28 has no pod-level resources (pod {uid})")
    for name, resources in info.container_resources.items():
        for kind in ("limits", "claims"):
            if getattr(resources, kind):
                raise UnsupportedFieldError(
                    f"a checkpoint of v1.28 has requests only, no {kind} "
                    f"(container {name} of pod {uid})"
                )
    containers = info.container_resources.items()
    return {name: _nullable_requests(resources.requests) for name, resources in containers}


def _nullable_requests(requests: Mapping[str, Quantity] | None) -> NullableResourceList | None:
    return None if requests is None else dict(requests)


def _resource_info(containers: Mapping[str, NullableResourceList | None]) -> PodResourceInfo:
    return PodResourceInfo(
        container_resources={
            name: ResourceRequirements(requests=_resource_list(amounts))
            for name, amounts in containers.items()
        }
    )


def _resource_list(amounts: NullableResourceList | None) -> dict[str, Quantity] | None:
    if amounts is None:
        return None
    return {name: Quantity.parse(amount) for name, amount in amounts.items()}


def _checksum(checkpoint: PodResourceAllocationCheckpoint) -> int:
    allocations = _dump_map(
        checkpoint.allocation_entries,
        lambda pods: _dump_map(pods, lambda amounts: _dump_map(amounts, _dump_quantity)),
    )
    statuses = _dump_map(checkpoint.resize_status_entries, str)
    dump = (
        "(*state.PodResourceAllocationCheckpoint){"
        f"AllocationEntries:(map[string]map[string]v1.ResourceList){allocations} "
        f"ResizeStatusEntries:(map[string]v1.PodResizeStatus){statuses} "
        "Checksum:(checksum.Checksum)0}"
    )
    return fnv1a_32(valid_text(dump).encode())


def _dump_map(entries: Mapping[str, V] | None, dump: Callable[[V], str]) -> str:
    if entries is None:
        return "<nil>"
    return f"map[{' '.join(f'{key}:{dump(entries[key])}' for key in sorted(entries))}]"


def _dump_quantity(quantity: Quantity | None) -> str:
    if quantity is None:
        return _dump_parts(0, 0, _NO_DECIMAL, "", "")
    parts = quantity.parts
    if parts.big:
        return _dump_parts(0, 0, _dump_decimal(parts.value, -parts.scale), "", parts.format)
    return _dump_parts(parts.value, parts.scale, _NO_DECIMAL, parts.text, parts.format)


def _dump_parts(value: int, scale: int, decimal: str, text: str, form: str) -> str:
    return (
        f"{{i:(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}} "
        f"d:(resource.infDecAmount){{Dec:{decimal}}} s:(string){text} "
        f"Format:(resource.Format){form}}}"
    )


def _dump_decimal(unscaled: int, scale: int) -> str:
    negative = str(unscaled < 0).lower()
    return (
        f"(*inf.Dec){{unscaled:(big.Int){{neg:(bool){negative} abs:(big.nat){_nat(unscaled)}}} "
        f"scale:(inf.Scale){scale}}}"
    )


def _nat(unscaled: int) -> str:
    """Return the 64-bit words in which Go stores a large number, least significant first."""
    rest, words = abs(unscaled), []
    while rest:
        words.append(str(rest % 2**_WORD_BITS))
        rest >>= _WORD_BITS
    return f"[{' '.join(words)}]" if words else "<nil>"
