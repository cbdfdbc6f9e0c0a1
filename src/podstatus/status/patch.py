"""The patch that turns the server's copy of a status into ours.

Upstream: preparePatchBytesForPodStatus, pkg/util/pod/pod.go v1.36.4.
"""

from typing import Any

import msgspec

from podstatus.kube.codec import differing_documents
from podstatus.kube.patch import create_two_way_patch, encode_document
from podstatus.kube.pod_status import PodStatus
from podstatus.kube.schemas import POD
from podstatus.kube.text import go_quoted


class StatusPatch(msgspec.Struct, frozen=True):
    """A strategic merge patch of a pod's status."""

    body: bytes
    unchanged: bool
    """The patch holds the UID only: there is nothing to send."""


def prepare_status_patch(uid: str, old: PodStatus, new: PodStatus) -> StatusPatch:
    """Create the patch; the UID in it is the precondition that it is still the same pod."""
    before, after = differing_documents(old, new)
    original: dict[str, Any] = {"metadata": {}, "status": before}
    modified: dict[str, Any] = {"metadata": {"uid": uid} if uid else {}, "status": after}
    patch = create_two_way_patch(original, modified, POD)
    body = encode_document(patch)
    return StatusPatch(body, "status" not in patch and _holds_only(uid, body))


def _holds_only(uid: str, body: bytes) -> bool:
    # Upstream compares texts, so a UID that JSON spells differently is never unchanged.
    return body == f'{{"metadata":{{"uid":{go_quoted(uid)}}}}}'.encode()
