"""Tokens: what is signed is read, and anything else is rejected."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.apiserver.service_accounts.tokens import (
    ISSUER,
    KubernetesClaims,
    NamedObject,
    TokenClaims,
    sign,
    user_name,
    verify,
)

KEY = b"k" * 32
CLAIMS = TokenClaims(
    aud=(ISSUER,),
    exp=2000,
    iat=1000,
    iss=ISSUER,
    jti="id",
    kubernetes=KubernetesClaims(
        namespace="ns",
        serviceaccount=NamedObject("robot", "u1"),
        pod=NamedObject("web", "u2"),
    ),
    nbf=1000,
    sub=user_name("ns", "robot"),
)
TOKEN = sign(CLAIMS, KEY).encode()


def test_a_token_has_the_claims_of_upstream() -> None:
    header, payload, _ = (
        base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        for part in TOKEN.decode().split(".")
    )
    assert json.loads(header)["alg"] == "HS256"
    assert json.loads(payload) == {
        "aud": [ISSUER],
        "exp": 2000,
        "iat": 1000,
        "iss": ISSUER,
        "jti": "id",
        "kubernetes.io": {
            "namespace": "ns",
            "serviceaccount": {"name": "robot", "uid": "u1"},
            "pod": {"name": "web", "uid": "u2"},
        },
        "nbf": 1000,
        "sub": "system:serviceaccount:ns:robot",
    }


@pytest.mark.parametrize(("now", "valid"), [(999, False), (1000, True), (1999, True)])
def test_a_token_is_valid_for_its_time(now: int, *, valid: bool) -> None:
    assert (verify(TOKEN, KEY, now) == CLAIMS) is valid


def test_a_token_has_an_end() -> None:
    assert verify(TOKEN, KEY, 2000) is None


def test_a_token_of_another_key_or_audience_is_rejected() -> None:
    assert verify(TOKEN, b"x" * 32, 1500) is None
    for changes in ({"aud": ("vault",)}, {"iss": "https://other"}):
        other = sign(structs.replace(CLAIMS, **changes), KEY).encode()
        assert verify(other, KEY, 1500) is None


def test_the_algorithm_of_the_header_is_never_used() -> None:
    payload = TOKEN.split(b".")[1]
    header = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=")
    assert verify(header + b"." + payload + b".", KEY, 1500) is None


@given(st.binary(max_size=300) | st.integers(0, len(TOKEN) - 1))
def test_other_bytes_are_rejected(damage: bytes | int) -> None:
    if isinstance(damage, int):
        changed = bytearray(TOKEN)
        changed[damage] ^= 1
        damage = bytes(changed)
    claims = verify(damage, KEY, 1500)
    # The last character of a part has bits that carry nothing.
    assert claims in (None, CLAIMS)
