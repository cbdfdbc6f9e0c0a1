"""The kubelet's checkpoint formats: file names, content and checksums.

| format | files | content |
|---|---|---|
| `KUBELET_V1_36` | `allocated_pods_state`, `actuated_pods_state` | as in the kubelet's files |
| | `podstatus_resize_state` | resize statuses, which that kubelet does not store |
| `KUBELET_V1_28` | `pod_status_manager_state` | requests of containers, resize statuses |

Pure: text in, values out. Reading and writing files belongs to
`checkpoint.allocation_checkpoint` and `checkpoint.atomic_dir`.

Tests: tests/checkpoint/formats.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec
from msgspec import structs

from podstatus.checkpoint.formats import v1_28, v1_36
from podstatus.kube.objects.allocation import Allocations


class CheckpointFile(Protocol):
    """A file of a checkpoint. It is written only if its content changes."""

    @property
    def name(self) -> str:
        """The name of the file."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The fields of `Allocations` that the file stores."""

    def encode_content(self, allocations: Allocations) -> bytes:
        """Encode the fields as the file's content. Raises UnsupportedFieldError."""

    def wrap(self, content: bytes) -> bytes:
        """Return the text of a file with this content."""

    def unwrap(self, text: bytes) -> bytes:
        """Return the content of a file with this text. Raises MalformedError."""

    def restore(self, content: bytes, onto: Allocations) -> Allocations:
        """Return `onto` with the fields of this file decoded from `content`.

        Raises MalformedError.
        """


class EnvelopeFile(msgspec.Struct, frozen=True):
    """A file with one field in a v1.36 envelope; whitespace around the envelope is no content."""

    name: str
    part: str
    write: Callable[..., str]
    read: Callable[[str], object]

    @property
    def parts(self) -> tuple[str, ...]:
        """The field of `Allocations` that the file stores."""
        return (self.part,)

    def encode_content(self, allocations: Allocations) -> bytes:
        """Encode the field as the data of the envelope."""
        return self.write(getattr(allocations, self.part)).encode()

    def wrap(self, content: bytes) -> bytes:
        """Put the data into an envelope with a checksum."""
        return v1_36.wrap(content.decode())

    def unwrap(self, text: bytes) -> bytes:
        """Return the data after checking its checksum. Raises MalformedError."""
        return v1_36.unwrap(text).encode()

    def restore(self, content: bytes, onto: Allocations) -> Allocations:
        """Return `onto` with the field decoded from the data. Raises MalformedError."""
        return structs.replace(onto, **{self.part: self.read(content.decode())})


class StatusManagerFile(msgspec.Struct, frozen=True):
    """The single file of v1.28; the whole text is content."""

    name: str = "pod_status_manager_state"
    parts: tuple[str, ...] = Allocations.__struct_fields__

    def encode_content(self, allocations: Allocations) -> bytes:
        """Encode the whole text. Raises UnsupportedFieldError."""
        return v1_28.encode_checkpoint(allocations)

    def wrap(self, content: bytes) -> bytes:
        """Return the content unchanged, since it includes the checksum."""
        return content

    def unwrap(self, text: bytes) -> bytes:
        """Return the text unchanged; `restore` checks the checksum."""
        return text

    def restore(self, content: bytes, onto: Allocations) -> Allocations:  # noqa: ARG002
        """Decode the whole state from the text. Raises MalformedError."""
        return v1_28.decode_checkpoint(content)


class CheckpointFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The files in which a kubelet version stores its state."""

    files: tuple[CheckpointFile, ...]
    write_through: bool
    """Whether removals are written at once, and missing files created on restore. Otherwise a
    removal is stored by the next change: an entry of a deleted pod does no harm."""


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
