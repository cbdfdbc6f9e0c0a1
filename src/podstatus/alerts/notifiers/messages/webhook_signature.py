"""The headers of a webhook request, with its signature.

    webhook-id: 0f8c…-firing
    webhook-timestamp: 1794798000
    webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=

They follow Standard Webhooks (https://www.standardwebhooks.com), which has libraries in many
languages: HMAC-SHA256 over `id.timestamp.body`.
"""

import base64
import binascii
import hashlib
import hmac

_PREFIX = b"whsec_"
"""Prefix of a secret in base64."""


class UnusableSecretError(ValueError):
    """The secret is not valid base64."""


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
