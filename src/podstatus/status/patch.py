"""The patch that turns the server's copy of a status into ours.

Upstream: preparePatchBytesForPodStatus, pkg/util/pod/pod.go v1.36.4.
"""

import msgspec

from podstatus.kube.encoding.go_json import Document, encode_document
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.kube.patch.schema import POD
from podstatus.kube.patch.values import create_value_patch
from podstatus.kube.scalars.go_text import go_quoted

_STATUS = POD.field("status").schema


class StatusPatch(msgspec.Struct, frozen=True):
    """A strategic merge patch of a pod's status."""

    body: bytes
    unchanged: bool
    """The patch holds the UID only: there is nothing to send."""


def prepare_status_patch(uid: str, old: PodStatus, new: PodStatus) -> StatusPatch:
    """Create the patch; the UID in it is the precondition that it is still the same pod."""
    status = create_value_patch(old, new, _STATUS)
    patch: Document = {"metadata": {"uid": uid}} if uid else {}
    body = encode_document(patch | {"status": status} if status else patch)
    return StatusPatch(body, not status and _holds_only(uid, body))


def _holds_only(uid: str, body: bytes) -> bool:
    # Upstream compares texts, so a UID that JSON spells differently is never unchanged.
    return body == f'{{"metadata":{{"uid":{go_quoted(uid)}}}}}'.encode()
