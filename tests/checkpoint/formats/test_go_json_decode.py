"""JSON is decoded as by Go's encoding/json; every row was checked against it."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import field

from podstatus.checkpoint.formats.go_json_decode import decode_onto
from podstatus.checkpoint.formats.go_json_scanner import MAX_DEPTH, JsonNumber, MalformedError, scan
from podstatus.kube.encoding.wire_struct import Wire, nil
from podstatus.kube.objects.containers import ResourceClaim
from podstatus.kube.scalars.quantity import Quantity


class Inner(Wire, frozen=True, kw_only=True):
    first: str = ""
    second: str = ""


class Outer(Wire, frozen=True, kw_only=True):
    """One field of each kind that occurs in checkpoints."""

    text: str = field(default_factory=str)
    number: int = field(default_factory=int)
    pointer: Inner | None = field(default_factory=nil)
    inners: dict[str, Inner] = field(default_factory=dict)
    amounts: dict[str, Quantity] | None = None
    claims: tuple[ResourceClaim, ...] | None = None
    task_skills: str = ""


def decoded(text: str | bytes, onto: Outer | None = None) -> Outer:
    data = text if isinstance(text, bytes) else text.encode()
    return decode_onto(data, onto or Outer())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("null", Outer()),
        (' \t\r\n{"text" : "a"} \n', Outer(text="a")),
        ('{"unknown":[1,{"a":null}],"text":"a"}', Outer(text="a")),
        ('{"TEXT":"a","Number":7}', Outer(text="a", number=7)),
        (
            '{"ta\u017f\u212as\u212aills":"a","tas\u212a\u017fkill\u017f":"b"}',
            Outer(task_skills="b"),
        ),
        ('{"pointer":{"firﬆ":"a","ﬁrst":"b"}}', Outer(pointer=Inner())),
        ('{"text":"a","Text":"b"}', Outer(text="b")),
        ('{"text":"a","text":null,"number":1,"number":null}', Outer(text="a", number=1)),
        ('{"number":18446744073709551615}', Outer(number=2**64 - 1)),
        ('{"pointer":{}}', Outer(pointer=Inner())),
        ('{"pointer":{"first":"a"},"pointer":null}', Outer()),
        (
            '{"pointer":{"first":"a"},"pointer":{"second":"b"}}',
            Outer(pointer=Inner(first="a", second="b")),
        ),
        (
            '{"inners":{"a":{"first":"1"}},"inners":{"a":{"second":"2"},"b":null}}',
            Outer(inners={"a": Inner(second="2"), "b": Inner()}),
        ),
        ('{"inners":{"a":{}},"inners":null}', Outer()),
        ('{"amounts":{}}', Outer(amounts={})),
        (
            '{"amounts":{"cpu":1.50,"memory":" 2 "}}',
            Outer(amounts={"cpu": Quantity("1.50"), "memory": Quantity("2")}),
        ),
        ('{"amounts":{"cpu":null}}', Outer(amounts={"cpu": Quantity("0")})),
        ('{"claims":[]}', Outer(claims=())),
        ('{"claims":[null]}', Outer(claims=(ResourceClaim(),))),
        (
            '{"claims":[{"name":"a","request":"r"}],"claims":[{"name":"b"},{}]}',
            Outer(claims=(ResourceClaim(name="b", request="r"), ResourceClaim())),
        ),
        (r'{"text":"\ud83d\ude00 \/ \u00e9"}', Outer(text="😀 / é")),
        (r'{"text":"\ud800 \udc00\ud83dx"}', Outer(text="\ufffd \ufffd\ufffdx")),
        (b'{"text":"\xff\xe2\x82a\xed\xa0\x80"}', Outer(text="\ufffd" * 3 + "a" + "\ufffd" * 3)),
        ('{"text":"\x7f\u2028"}', Outer(text="\x7f\u2028")),
    ],
)
def test_what_go_accepts_means_the_same(text: str | bytes, expected: Outer) -> None:
    assert decoded(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "{", "}", "[]", "[", '"text"', "1", "true", "nul", "nulL", "NaN", "Infinity"),
        *("{}x", "{}{}", "{},", "\x00{}", "\ufeff{}", "{}\x00", "{'text':1}", "{text:1}", "// {}"),
        *('{"text":"a",}', "{,}", '{"text"}', '{"text":}', '{"text" "a"}', '{"a":1 "b":2}'),
        *('{"text":1}', '{"text":true}', '{"text":{}}', '{"text":"a', '{"text":"a\n"}'),
        *(r'{"text":"\x41"}', r'{"text":"\u12"}', r'{"text":"\u12g4"}', '{"text":"\\"}'),
        *('{"number":"1"}', '{"number":-1}', '{"number":-0}', '{"number":1.0}', '{"number":1e2}'),
        *('{"number":01}', '{"number":+1}', '{"number":.5}', '{"number":1.}', '{"number":1e}'),
        *('{"number":18446744073709551616}', '{"number":' + "9" * 5000 + "}", '{"number":٣}'),
        *('{"pointer":[]}', '{"pointer":"a"}', '{"pointer":false}', '{"inners":[]}'),
        *('{"inners":{"a":1}}', '{"inners":{1:{}}}', '{"claims":{}}', '{"claims":[1]}'),
        *('{"amounts":{"cpu":"abc"}}', '{"amounts":{"cpu":""}}', '{"amounts":{"cpu":true}}'),
        *('{"amounts":{"cpu":[]}}', r'{"amounts":{"cpu":"\u0031"}}', r'{"amounts":{"cpu":"1\n"}}'),
        *('{"x":[1,]}', '{"x":[,1]}', '{"x":[1 2]}', '{"x":{"a":tru}}', '{"x":01}'),
    ],
)
def test_what_go_refuses_is_refused(text: str) -> None:
    with pytest.raises(MalformedError):
        decoded(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON: it ends where a value is expected"),
        ("{}x", "not JSON: 'x' at 2, where the end is expected"),
        ('{"a" 1}', "not JSON: '1' at 5, where ':' is expected"),
        ('{"number":1.5}', "number: expected an integer from 0 to 2^64-1, got 1.5"),
        ('{"pointer":{"first":[]}}', "pointer: first: expected a string, got an array"),
        ("[]", "expected an object, got an array"),
        ('{"text":true}', "text: expected a string, got true"),
    ],
)
def test_the_message_says_what_is_wrong_and_where(text: str, message: str) -> None:
    with pytest.raises(MalformedError) as refused:
        decoded(text)
    assert str(refused.value) == message


def test_a_value_is_read_on_top_of_an_old_one() -> None:
    old = Outer(text="old", inners={"a": Inner()})
    expected = Outer(text="old", inners={"a": Inner(), "b": Inner()})
    assert decoded('{"inners":{"b":null}}', old) == expected


@pytest.mark.parametrize("bracket", ["[]", ("{}")])
def test_depth_is_bounded(bracket: str) -> None:
    def nested(depth: int) -> bytes:
        opening = "[" if bracket == "[]" else '{"a":'
        return (opening * depth + "1" + bracket[1] * depth).encode()

    scan(nested(MAX_DEPTH))
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(MalformedError, match="levels deep"):
            scan(nested(depth))


@given(st.from_regex(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", fullmatch=True))
def test_numbers_keep_their_spelling(text: str) -> None:
    assert scan(text.encode()) == JsonNumber(text)


@given(st.binary() | st.text(alphabet='{}[]",:\\ue0123 ntrfals\x00é').map(str.encode))
def test_any_bytes_are_json_or_malformed(data: bytes) -> None:
    with suppress(MalformedError):
        scan(data)
