import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.encoding.go_json import JsonValue, encode_document, go_equal, go_format_v

LOST = "\N{REPLACEMENT CHARACTER}"

documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=6),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=4), below),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (True, 1),
        (False, 0),
        (1, 1.0),
        (None, False),
        ("", None),
        ([], {}),
        ([1], [True]),
        ({"a": {"b": [0]}}, {"a": {"b": [0.0]}}),
        ({"a": None}, {}),
        ([1, 2], [2, 1]),
        ("1", 1),
    ],
)
def test_values_that_go_tells_apart_differ(left: JsonValue, right: JsonValue) -> None:
    assert not go_equal(left, right)
    assert not go_equal(right, left)


@given(documents)
def test_a_value_is_the_same_as_its_copy(value: JsonValue) -> None:
    assert go_equal(value, json.loads(json.dumps(value)))


def test_the_order_of_keys_makes_no_difference() -> None:
    assert go_equal({"a": 1, "b": [True]}, {"b": [True], "a": 1})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (None, "<nil>"),
        (True, "true"),
        (-3, "-3"),
        (1.0, "1"),
        (-0.0, "-0"),
        (2.5, "2.5"),
        (999999.0, "999999"),
        (1e6, "1e+06"),
        (123456789.0, "1.23456789e+08"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-2.5e30, "-2.5e+30"),
        ([1, "x", None], "[1 x <nil>]"),
        ({"b": 1, "a": {"c": []}}, "map[a:map[c:[]] b:1]"),
    ],
)
def test_text_is_what_go_prints(value: JsonValue, text: str) -> None:
    assert go_format_v(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param({"b": 1, "a": None, "B": True}, '{"B":true,"a":null,"b":1}', id="sorted keys"),
        pytest.param({"é": [], "z": {}, "€": []}, '{"z":{},"é":[],"€":[]}', id="sorted by bytes"),
        pytest.param(["<a>&"], r'["\u003ca\u003e\u0026"]', id="HTML"),
        pytest.param({"<": "\u2028\u2029"}, r'{"\u003c":"\u2028\u2029"}', id="line separators"),
        pytest.param("\b\f\n\r\t", r'"\b\f\n\r\t"', id="short escapes"),
        pytest.param("\x00\x1f\x7f", '"\\u0000\\u001f\x7f"', id="control characters"),
        pytest.param('"\\/é漢😀', '"\\"\\\\/é漢😀"', id="quotes and other scripts"),
        pytest.param("a\udce2\udc82 \ud800", f'"a{LOST}{LOST} {LOST}"', id="bytes of no character"),
        pytest.param({"\udc80": "<"}, f'{{"{LOST}":"\\u003c"}}', id="such bytes in a key"),
        pytest.param([1.0, -0.0, 2.5, True], "[1,-0,2.5,true]", id="plain floats"),
        pytest.param([1e20, 1e21, -1.5e300], "[100000000000000000000,1e+21,-1.5e+300]", id="big"),
        pytest.param([1e-6, 1.5e-7, 5e-324], "[0.000001,1.5e-7,5e-324]", id="small"),
        pytest.param([123456789012345680000.0], "[123456789012345680000]", id="zeros filled in"),
        pytest.param([2**63 - 1, -(2**63)], f"[{2**63 - 1},{-(2**63)}]", id="64 bits"),
        pytest.param([2**63], "[9223372036854776000]", id="65 bits"),
        pytest.param([10**30], "[1e+30]", id="beyond"),
    ],
)
def test_encoding_is_what_go_writes(value: JsonValue, text: str) -> None:
    assert encode_document({"x": value}) == f'{{"x":{text}}}'.encode()


@given(documents)
def test_what_is_written_reads_back(value: JsonValue) -> None:
    assert go_equal(json.loads(encode_document({"x": value})), {"x": value})


@given(documents)
def test_a_float_somewhere_changes_nothing_elsewhere(value: JsonValue) -> None:
    plain, mixed = encode_document({"x": value}), encode_document({"x": value, "y": 0.5})
    assert mixed == plain[:-1] + b',"y":0.5}'
