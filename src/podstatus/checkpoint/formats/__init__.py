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

import msgspec
from msgspec import structs

from podstatus.checkpoint.formats import v1_28, v1_36
from podstatus.kube.objects.allocation import Allocations


class CheckpointFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a checkpoint. It is written only if its content changes."""

    name: str
    parts: tuple[str, ...]
    """The fields of `Allocations` that the file stores."""
    encode_content: Callable[[Allocations], bytes]
    """Encodes the fields as the file's content. Raises UnsupportedFieldError."""
    wrap: Callable[[bytes], bytes] = bytes
    """Returns the text of a file with this content."""
    unwrap: Callable[[bytes], bytes] = bytes
    """Returns the content of a file with this text. Raises MalformedError."""
    restore: Callable[[bytes, Allocations], Allocations]
    """Returns the second argument with the fields of this file decoded from the content.

    Raises MalformedError.
    """


def envelope_file(name: str, part: str, kind: type[v1_36.Entries]) -> CheckpointFile:
    """Return a file with one field in a v1.36 envelope.

    Whitespace around the envelope is no content.
    """
    return CheckpointFile(
        name=name,
        parts=(part,),
        encode_content=lambda state: v1_36.encode_entries(kind, getattr(state, part)).encode(),
        wrap=lambda content: v1_36.wrap(content.decode()),
        unwrap=lambda text: v1_36.unwrap(text).encode(),
        restore=lambda content, onto: structs.replace(
            onto, **{part: v1_36.decode_entries(kind, content.decode())}
        ),
    )


STATUS_MANAGER_FILE = CheckpointFile(
    name="pod_status_manager_state",
    parts=Allocations.__struct_fields__,
    encode_content=v1_28.encode_checkpoint,
    restore=lambda content, _: v1_28.decode_checkpoint(content),
)
"""The single file of v1.28; the whole text, with its checksum, is content."""


class CheckpointFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The files in which a kubelet version stores its state."""

    files: tuple[CheckpointFile, ...]
    write_through: bool
    """Whether removals are written at once, and missing files created on restore. Otherwise a
    removal is stored by the next change: an entry of a deleted pod does no harm."""
    requests_only: bool = False
    """Whether the files hold requests of regular containers only."""


KUBELET_V1_36 = CheckpointFormat(
    files=(
        envelope_file("allocated_pods_state", "allocated", v1_36.ResourceEntries),
        envelope_file("actuated_pods_state", "actuated", v1_36.ResourceEntries),
        envelope_file("podstatus_resize_state", "resize_statuses", v1_36.ResizeEntries),
    ),
    write_through=False,
)
KUBELET_V1_28 = CheckpointFormat(
    files=(STATUS_MANAGER_FILE,), write_through=True, requests_only=True
)
