"""The kubelet's checkpoint formats: file names, content and checksums.

| format | files | content |
|---|---|---|
| `KUBELET_V1_36` | `allocated_pods_state`, `actuated_pods_state` | as in the kubelet's files |
| | `podstatus_resize_state` | resize statuses, which that kubelet does not store |
| `KUBELET_V1_28` | `pod_status_manager_state` | requests of containers, resize statuses |

Pure: text in, values out. Reading and writing files belongs to `checkpoint.state` and
`checkpoint.atomic_dir`.

Tests: tests/checkpoint/formats.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec
from msgspec import structs

from podstatus.checkpoint.formats import v1_28, v1_36
from podstatus.kube.objects.allocation import Allocations


class CheckpointFile(Protocol):
    """One file. Its content is what decides whether it must be written anew."""

    @property
    def name(self) -> str:
        """What the file is called."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The fields of `Allocations` that it keeps."""

    def encode_content(self, allocations: Allocations) -> bytes:
        """What the file must hold. Raises CannotCarryError."""

    def wrap(self, content: bytes) -> bytes:
        """The text of the file with this content."""

    def unwrap(self, text: bytes) -> bytes:
        """The content of a file with this text. Raises MalformedError."""

    def restore(self, content: bytes, onto: Allocations) -> Allocations:
        """The allocations with its parts taken from this content. Raises MalformedError."""


class EnvelopeFile(msgspec.Struct, frozen=True):
    """A file that keeps one part, in an envelope of v1.36: spacing around it is no content."""

    name: str
    part: str
    write: Callable[..., str]
    read: Callable[[str], object]

    @property
    def parts(self) -> tuple[str, ...]:
        """The one part."""
        return (self.part,)

    def encode_content(self, allocations: Allocations) -> bytes:
        """The data of the envelope."""
        return self.write(getattr(allocations, self.part)).encode()

    def wrap(self, content: bytes) -> bytes:
        """The data in its envelope."""
        return v1_36.wrap(content.decode())

    def unwrap(self, text: bytes) -> bytes:
        """The data, if it is what was put in."""
        return v1_36.unwrap(text).encode()

    def restore(self, content: bytes, onto: Allocations) -> Allocations:
        """The allocations with this part read from the data."""
        return structs.replace(onto, **{self.part: self.read(content.decode())})


class StatusManagerFile(msgspec.Struct, frozen=True):
    """The one file of v1.28; every letter of it is content."""

    name: str = "pod_status_manager_state"
    parts: tuple[str, ...] = Allocations.__struct_fields__

    def encode_content(self, allocations: Allocations) -> bytes:
        """The whole text."""
        return v1_28.encode_checkpoint(allocations)

    def wrap(self, content: bytes) -> bytes:
        """The text as it is: its checksum is inside."""
        return content

    def unwrap(self, text: bytes) -> bytes:
        """The text as it is: its checksum is looked at when it is read."""
        return text

    def restore(self, content: bytes, onto: Allocations) -> Allocations:  # noqa: ARG002
        """All that the text holds."""
        return v1_28.decode_checkpoint(content)


class CheckpointFormat(msgspec.Struct, frozen=True, kw_only=True):
    """How a kubelet keeps the state."""

    files: tuple[CheckpointFile, ...]
    write_through: bool
    """Whether removals are written at once, and files made when there are none. If not, a
    removal waits for the next change: to remember a pod that is gone does no harm."""


KUBELET_V1_36 = CheckpointFormat(
    files=(
        EnvelopeFile(
            "allocated_pods_state",
            "allocated",
            v1_36.encode_resources,
            v1_36.decode_resources,
        ),
        EnvelopeFile(
            "actuated_pods_state",
            "actuated",
            v1_36.encode_resources,
            v1_36.decode_resources,
        ),
        EnvelopeFile(
            "podstatus_resize_state",
            "resize_statuses",
            v1_36.encode_resize_statuses,
            v1_36.decode_resize_statuses,
        ),
    ),
    write_through=False,
)
KUBELET_V1_28 = CheckpointFormat(files=(StatusManagerFile(),), write_through=True)
