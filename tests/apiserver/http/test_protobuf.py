"""Bodies that Go's serializer wrote (apimachinery v0.36.4) are decoded to the same objects.

`protobuf_bodies.jsonl` has the bytes next to Go's JSON of the same object.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.http.protobuf import decode_protobuf

LINES = (Path(__file__).parent / "protobuf_bodies.jsonl").read_text(encoding="utf-8").splitlines()
RECORDED = [json.loads(line) for line in LINES]
TAKEN = [record for record in RECORDED if record["object"]["kind"] != "Pod"]
BODIES = [bytes.fromhex(record["body"]) for record in TAKEN]


def without_empty(value: Any) -> Any:
    """Go prints some empty objects that our documents omit, and vice versa."""
    if isinstance(value, dict):
        return {key: without_empty(item) for key, item in value.items() if item != {}}
    return [without_empty(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("record", TAKEN, ids=lambda record: str(record["object"]["kind"]))
def test_what_go_wrote_is_read(record: dict[str, Any]) -> None:
    document = decode_protobuf(bytes.fromhex(record["body"]))
    assert without_empty(document) == record["object"]


def test_other_kinds_are_refused_by_name() -> None:
    (pod,) = [record for record in RECORDED if record["object"]["kind"] == "Pod"]
    with pytest.raises(StatusError, match="not supported for Pod") as refused:
        decode_protobuf(bytes.fromhex(pod["body"]))
    assert refused.value.code == 415


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "magic number"),
        (b"{}", "magic number"),
        (b"k8s\0\x0a\xff", "end of data"),
        (b"k8s\0\x0b", "unknown wire type 3"),
        (b"k8s\0\x08\x01", "expected bytes"),
        (b"k8s\0" + b"\xff" * 11, "too long"),
        (b"k8s\0\x1a\x01\xff", "not UTF-8"),
    ],
)
def test_damaged_bodies_are_refused_with_the_reason(body: bytes, why: str) -> None:
    with pytest.raises(StatusError, match=why) as refused:
        decode_protobuf(body)
    assert refused.value.code == 400


@given(st.sampled_from(BODIES), st.integers(0, 400), st.binary(max_size=3))
@example(BODIES[0], 5, b"")
def test_whatever_the_bytes_are_there_is_an_answer(body: bytes, at: int, put: bytes) -> None:
    with suppress(StatusError):
        assert json.dumps(decode_protobuf(body[:at] + put + body[at + 1 :]))


@pytest.mark.parametrize(
    ("seconds", "read"),
    [(2**31 - 1, 2**31 - 1), (2**31, -(2**31)), (2**32 + 7, 7), (2**64 - 1, -1)],
)
def test_an_int32_keeps_its_low_bits_as_in_go(seconds: int, read: int) -> None:
    def varint(number: int) -> bytes:
        low, rest = number & 0x7F, number >> 7
        return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])

    spec = b"\x10" + varint(seconds)
    lease = b"\x12" + varint(len(spec)) + spec
    meta = b"\x0a\x16coordination.k8s.io/v1\x12\x05Lease"
    meta = b"\x0a" + varint(len(meta)) + meta
    body = b"k8s\0" + meta + b"\x12" + varint(len(lease)) + lease
    assert decode_protobuf(body)["spec"] == {"leaseDurationSeconds": read}
