"""Values that fit a Go type, and the messages of Go's decoder for others."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.patch.schema import POD, Schema, schema_of
from podstatus.kube.validation.strict_fields import JsonMembers
from podstatus.kube.validation.unmarshal import (
    NumberLiteral,
    json_fits_schema,
    unmarshal_error,
    value_fits_schema,
)
from tests.support.data.integer_fields import IntegerField, integer_fields

KINDS = (
    "Binding ConfigMap DeleteOptions Event Lease Namespace Node Pod Secret ServiceAccount "
    "SubjectAccessReview TokenReview"
)
SCHEMAS = [schema_of(kind) for kind in KINDS.split()]
FIELDS = [(schema, field) for schema in SCHEMAS for field in integer_fields(schema)]
BIG = st.integers(2**31, 2**80) | st.integers(-(2**80), -(2**31) - 1)
NO_INTEGERS = st.sampled_from(["1.0", "1e2", "0.5", "-1e400", "9" * 5000, "-" + "9" * 20])


def error_of(text: str, schema: Schema) -> str:
    read = json.loads(
        text, object_pairs_hook=JsonMembers, parse_int=NumberLiteral, parse_float=NumberLiteral
    )
    error = unmarshal_error(read, schema)
    assert json_fits_schema(text.encode(), schema) == (not error)
    return error


def text_holding(field: IntegerField, literal: str) -> str:
    return json.dumps(field.holding(1)).replace("1", literal)


def test_there_are_as_many_ways_to_integers_as_expected() -> None:
    assert len(FIELDS) > 200
    assert {field.bits for _, field in FIELDS} == {32, 64}


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.type)
def test_the_bounds_of_every_integer_are_those_of_its_go_type(schema: Schema) -> None:
    for field in integer_fields(schema):
        low, high = -(2 ** (field.bits - 1)), 2 ** (field.bits - 1) - 1
        for value in (low, 0, high):
            assert error_of(text_holding(field, str(value)), schema) == ""
            assert value_fits_schema(field.holding(value), schema)
        for value in (low - 1, high + 1):
            message = (
                f"json: cannot unmarshal number {value} into Go struct field {field.go_field} "
                f"of type {field.go_type}"
            )
            assert error_of(text_holding(field, str(value)), schema) == message
            assert not value_fits_schema(field.holding(value), schema)
            assert unmarshal_error(field.holding(value), schema) == message


@given(st.sampled_from(FIELDS), BIG.map(str) | NO_INTEGERS)
def test_what_fits_no_integer_is_refused_with_the_field(
    at: tuple[Schema, IntegerField], literal: str
) -> None:
    schema, field = at
    bound = 2 ** (field.bits - 1)
    fits = "." not in literal and "e" not in literal and len(literal) < 99
    fits = fits and -bound <= int(literal) < bound
    error = error_of(text_holding(field, literal), schema)
    assert bool(error) == (not fits)
    assert not error or f"{field.go_field} of type {field.go_type}" in error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"metadata": null, "spec": {"containers": [null, {"ports": null}]}}', ""),
        ('{"spec": {"priority": -0}}', ""),
        ('{"spec": {"unknown": {"priority": 1e400}}, "other": [1.5]}', ""),
        (
            '{"spec": {"priority": 2147483648}, "metadata": {"generation": 1.5}}',
            "number 2147483648 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            '{"metadata": {"labels": {"a": 1}}}',
            "number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            '{"spec": {"priority": 1.5, "priority": 1}}',
            "number 1.5 into Go struct field PodSpec.spec.priority of type int32",
        ),
        ("[]", "array into Go value of type v1.Pod"),
    ],
)
def test_the_first_error_in_the_text_is_returned(text: str, message: str) -> None:
    assert error_of(text, POD) == (f"json: cannot unmarshal {message}" if message else "")


def test_a_type_that_reads_itself_ends_the_decoding() -> None:
    wrong = {"spec": {"priority": "x", "overhead": {"cpu": "1 x"}, "nodeName": 5}}
    assert unmarshal_error(wrong, POD).startswith("quantities must match")


@pytest.mark.parametrize(
    "value", ["1", 1, 0.5, 1e3, "1 ", " 1", "+1", ".5", "5.", "99999999999999999999", None]
)
def test_quantities_are_texts_and_numbers(value: object) -> None:
    assert error_of(json.dumps({"spec": {"overhead": {"cpu": value}}}), POD) == ""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1_000", "quantities must match"),
        ("1 Gi", "quantities must match"),
        ("1\t", "quantities must match"),
        ("", "quantities must match"),
        (True, "quantities must match"),
        ({}, "quantities must match"),
        ("1e", "unable to parse quantity's suffix"),
        ("1Kib", "quantities must match"),
        ("1KK", "unable to parse quantity's suffix"),
        ("1e999999999", "needs over 600 digits"),
        (10**700, "needs over 600 digits"),
        ("9" * 700, "needs over 600 digits"),
    ],
)
def test_an_invalid_quantity_is_rejected_with_upstreams_message(
    value: object, message: str
) -> None:
    assert message in unmarshal_error({"spec": {"overhead": {"cpu": value}}}, POD)
    assert not value_fits_schema({"spec": {"overhead": {"cpu": value}}}, POD)


def test_a_quantity_or_number_of_a_megabyte_costs_as_much_as_reading_it() -> None:
    def seconds(text: str) -> float:
        began = time.process_time()
        assert error_of(text, POD)
        return time.process_time() - began

    digits = "9" * 2**20
    for wrong in (f'{{"overhead": {{"cpu": "{digits}"}}}}', f'{{"priority": {digits}}}'):
        # Quadratic conversion of a million digits takes ten seconds.
        assert seconds(f'{{"spec": {wrong}}}') < 3


def test_the_first_error_is_found_in_and_after_a_long_list() -> None:
    groups = ",".join(["7"] * 200_000)
    context = f'{{"supplementalGroups": [{groups}], "fsGroup": 1.5}}'
    text = f'{{"spec": {{"securityContext": {context}}}}}'
    assert "fsGroup of type int64" in error_of(text, POD)
    text = text.replace("[7,", "[1.0,", 1)
    assert "supplementalGroups of type int64" in error_of(text, POD)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metadata", "spec", "containers", "labels", "priority", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=20,
)


@given(JSON.filter(lambda value: value is not None), st.sampled_from(SCHEMAS))
def test_fast_and_slow_agree_on_any_value(value: Any, schema: Schema) -> None:
    assert value_fits_schema(value, schema) == (not unmarshal_error(value, schema))
