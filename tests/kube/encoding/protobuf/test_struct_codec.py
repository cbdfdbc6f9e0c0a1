"""Structs survive the way to protobuf and back; other bytes are rejected or skipped, in bounds."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.encoding.protobuf.field_table import parse_field_table
from podstatus.kube.encoding.protobuf.struct_codec import StructCodec
from podstatus.kube.encoding.protobuf.wire import MalformedMessageError

TABLE = """
Point: 1=x:int32 2=label
Shape: 1=name 2=closed:bool 3=id:int64 4=size:uint64 5=weight:uint32 6=kind:enum 7=data:bytes
  8=origin:Point 9=points:[Point] 16=tags:[str] 17=offsets:[int64] 18=labels:{str}
  200=corners:{Point} 201=parts:[bytes] 202=counts:{int32}
"""


class APoint(msgspec.Struct, frozen=True):
    x: int = 0
    label: str = ""


class AShape(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""
    closed: bool = False
    id: int = 0
    size: int = 0
    weight: int = 0
    kind: int = 0
    data: bytes = b""
    origin: APoint | None = None
    points: tuple[APoint, ...] = ()
    tags: tuple[str, ...] = ()
    offsets: tuple[int, ...] = ()
    labels: dict[str, str] = {}
    corners: dict[str, APoint] = {}
    parts: tuple[bytes, ...] = ()
    counts: dict[str, int] = {}


CODEC = StructCodec(parse_field_table(TABLE), prefix="A")
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=300)
POINTS = st.builds(APoint, x=INT32, label=TEXT)
SHAPES = st.builds(
    AShape,
    name=TEXT,
    closed=st.booleans(),
    id=INT64,
    size=st.integers(0, 2**64 - 1),
    weight=st.integers(0, 2**32 - 1),
    kind=INT32,
    data=st.binary(),
    origin=st.none() | POINTS,
    points=st.lists(POINTS, max_size=3).map(tuple),
    tags=st.lists(TEXT, max_size=3).map(tuple),
    offsets=st.lists(INT64, max_size=3).map(tuple),
    labels=st.dictionaries(TEXT, TEXT, max_size=3),
    corners=st.dictionaries(TEXT, POINTS, max_size=3),
    parts=st.lists(st.binary(), max_size=3).map(tuple),
    counts=st.dictionaries(TEXT, INT32, max_size=3),
)


@given(SHAPES)
def test_what_is_encoded_is_decoded_to_the_same_value(shape: AShape) -> None:
    assert CODEC.decode(CODEC.encode(shape), AShape) == shape


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_malformed(data: bytes) -> None:
    try:
        CODEC.decode(data, AShape)
    except MalformedMessageError:
        return


@given(SHAPES, st.data())
def test_a_truncated_message_is_no_other_error(shape: AShape, data: st.DataObject) -> None:
    encoded = CODEC.encode(shape)
    cut = data.draw(st.integers(0, len(encoded)))
    try:
        CODEC.decode(encoded[:cut], AShape)
    except MalformedMessageError:
        return


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("0aff", "end of data"),  # a string of 127 bytes, of which none follows
        ("0affffffffffffffffff7f", "end of data"),  # of 2**63 bytes
        ("0b", "unknown wire type 3"),
        ("ff" * 11, "too long"),
        ("0801", "expected bytes"),
        ("1201", "end of data"),
        ("120101", "expected a varint"),
        ("0a01ff", "not UTF-8"),
        ("4a020801", None),
        ("8a0101ff", "end of data"),  # a packed list that ends within a number
        ("92010308ff01", "expected bytes"),  # a map entry with a number as its key
    ],
)
def test_damaged_messages_are_rejected_with_the_reason(data: str, why: str | None) -> None:
    if why is None:
        assert CODEC.decode(bytes.fromhex(data), AShape) == AShape(points=(APoint(1),))
        return
    with pytest.raises(MalformedMessageError, match=why):
        CODEC.decode(bytes.fromhex(data), AShape)


def test_lists_of_numbers_are_read_packed_and_unpacked() -> None:
    for data in ("8a01020105", "880101880105", "8a010101880105"):
        assert CODEC.decode(bytes.fromhex(data), AShape) == AShape(offsets=(1, 5))


def test_unknown_fields_of_every_wire_type_are_skipped() -> None:
    data = bytes.fromhex("f80101 f90101020304050607 08fa0101ff fd0101020304 0a0161")
    assert CODEC.decode(data, AShape) == AShape(name="a")


def test_the_last_of_several_values_counts() -> None:
    assert CODEC.decode(bytes.fromhex("0a01610a0162"), AShape) == AShape(name="b")


def test_a_map_entry_may_omit_zero_values() -> None:
    decoded = CODEC.decode(bytes.fromhex("920100 920403 0a0161 d20c00"), AShape)
    assert (decoded.labels, decoded.counts) == ({"": ""}, {"": 0})


def test_zero_values_are_not_sent() -> None:
    assert CODEC.encode(AShape()) == b""
    assert CODEC.encode(AShape(origin=APoint())).hex() == "4200"


@pytest.mark.parametrize(
    "shape",
    [
        AShape(id=2**63),
        AShape(size=-1),
        AShape(size=2**64),
        AShape(weight=2**32),
        AShape(kind=2**31),
        AShape(offsets=(0, -(2**63) - 1)),
    ],
)
def test_numbers_that_do_not_fit_are_not_truncated(shape: AShape) -> None:
    with pytest.raises(ValueError, match="is not between"):
        CODEC.encode(shape)


def test_a_message_may_be_left_encoded() -> None:
    class ARaw(msgspec.Struct, frozen=True):
        points: tuple[bytes, ...] = ()

    codec = StructCodec(parse_field_table("Raw: 9=points:[Point]"), prefix="A")
    encoded = CODEC.encode(AShape(points=(APoint(1), APoint(2))))
    raw = codec.decode(encoded, ARaw)
    assert [CODEC.decode(point, APoint) for point in raw.points] == [APoint(1), APoint(2)]
    assert codec.encode(raw) == encoded


class AWrong(msgspec.Struct, frozen=True):
    origin: AShape | None = None


class AnUnknownField(msgspec.Struct, frozen=True):
    color: str = ""


def test_a_struct_that_does_not_fit_the_table_is_an_error_of_the_program() -> None:
    codec = StructCodec(parse_field_table("Wrong: 1=origin:Point\nnUnknownField: 1=x"), prefix="A")
    with pytest.raises(TypeError, match="origin is a Point"):
        codec.encode(AWrong())
    with pytest.raises(TypeError, match="has no color"):
        codec.encode(AnUnknownField())
