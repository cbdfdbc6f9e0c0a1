"""A webhook request: the alert as JSON, and its headers. Version 1 only ever gains fields.

    webhook-id: 0f8c…-firing
    webhook-timestamp: 1794798000
    webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=

The headers follow Standard Webhooks (https://www.standardwebhooks.com), which has libraries in many
languages: HMAC-SHA256 over `id.timestamp.body`.
"""

import base64
import binascii
import hashlib
import hmac

import msgspec

from podstatus.alerts.model import Alert
from podstatus.kube.scalars.time import MicroTime

VERSION = 1
MAX_BODY_BYTES = 256 * 1024
"""Annotations are omitted from a body that would be larger."""

_PREFIX = b"whsec_"
"""Prefix of a secret in base64."""


class UnusableSecretError(ValueError):
    """The secret is not valid base64."""


def message_id(alert: Alert) -> str:
    """Return an ID that is the same for every repetition, so that receivers can deduplicate."""
    return f"{alert.id}-{alert.state}"


def webhook_body(alert: Alert, link: str = "") -> bytes:
    """Encode the alert as JSON; `link` is its URL."""
    subject = alert.subject
    message = {
        "version": VERSION,
        "id": alert.id,
        "dedupKey": alert.dedup_key,
        "state": alert.state,
        "rule": alert.rule,
        "severity": alert.severity,
        "subject": {
            "scope": subject.scope,
            "namespace": subject.namespace,
            "name": subject.name,
            "uid": subject.uid,
            "node": subject.node,
        },
        "labels": alert.labels,
        "annotations": alert.annotations,
        "truncated": False,
        "since": _time(alert.since) or "",
        "fired": _time(alert.fired),
        "resolved": _time(alert.resolved),
        "link": link,
    }
    body = msgspec.json.encode(message)
    if len(body) <= MAX_BODY_BYTES:
        return body
    return msgspec.json.encode(message | {"annotations": {}, "truncated": True})


def _time(nanos: int) -> str | None:
    return MicroTime.from_unix_nanos(nanos).wire if nanos else None


def webhook_headers(id_: str, seconds: int, body: bytes, secret: bytes | None) -> dict[str, str]:
    """Return the headers for a body sent at a Unix time; signed if there is a secret.

    Raises UnusableSecretError.
    """
    headers = {"webhook-id": id_, "webhook-timestamp": str(seconds), "Idempotency-Key": id_}
    if secret is not None:
        headers["webhook-signature"] = f"v1,{_signature(id_, seconds, body, secret)}"
    return headers


def _signature(id_: str, seconds: int, body: bytes, secret: bytes) -> str:
    signed = f"{id_}.{seconds}.".encode() + body
    return base64.b64encode(hmac.digest(_key(secret), signed, hashlib.sha256)).decode()


def _key(secret: bytes) -> bytes:
    if not secret.startswith(_PREFIX):
        return secret
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error as error:
        raise UnusableSecretError("the text after whsec_ is not base64") from error
