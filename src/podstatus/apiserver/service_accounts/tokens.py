"""Tokens of service accounts: JSON Web Tokens, signed with a key of the state directory (HS256).

Upstream: pkg/serviceaccount/claims.go v1.36.4, which has the same claims. Upstream signs with a
private key, so that others can verify tokens; here only this server does.
"""

import base64
import binascii
import hashlib
import hmac

import msgspec

from podstatus.base.msgspec_json import decode_json

ISSUER = "https://kubernetes.default.svc.cluster.local"
"""The issuer, and the audience of tokens for this server."""
USER_PREFIX = "system:serviceaccount:"
_HEADER = {"alg": "HS256", "typ": "JWT"}


class NamedObject(msgspec.Struct, frozen=True):
    """An object that a token depends on."""

    name: str
    uid: str


class KubernetesClaims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The private claims: the service account, and the pod that the token is bound to."""

    namespace: str
    serviceaccount: NamedObject
    pod: NamedObject | None = None


class TokenClaims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a token; times in seconds since the Unix epoch."""

    aud: tuple[str, ...]
    exp: int
    iat: int
    iss: str
    jti: str
    kubernetes: KubernetesClaims = msgspec.field(name="kubernetes.io")
    nbf: int
    sub: str


def user_name(namespace: str, account: str) -> str:
    """Return the user name of a service account."""
    return f"{USER_PREFIX}{namespace}:{account}"


def sign(claims: TokenClaims, key: bytes) -> str:
    """Return the token with these claims."""
    content = b".".join(_encode(msgspec.json.encode(part)) for part in (_HEADER, claims))
    return (content + b"." + _encode(_signature(content, key))).decode()


def verify(token: bytes, key: bytes, now: int) -> TokenClaims | None:
    """Return the claims of a token for this server; None if it is not valid at `now` (seconds)."""
    content, _, signature = token.rpartition(b".")
    try:
        if not hmac.compare_digest(_decode(signature), _signature(content, key)):
            return None
        claims = decode_json(_decode(content.partition(b".")[2]), TokenClaims)
    except (binascii.Error, msgspec.DecodeError, ValueError):
        return None
    if claims.iss != ISSUER or ISSUER not in claims.aud or not claims.nbf <= now < claims.exp:
        return None
    return claims


def _signature(content: bytes, key: bytes) -> bytes:
    return hmac.digest(key, content, hashlib.sha256)


def _encode(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _decode(text: bytes) -> bytes:
    return base64.b64decode(text + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
