import string
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.request.selector_parameters import (
    FieldRequirement,
    parse_field_selector,
    parse_label_selector,
)
from podstatus.apiserver.resources import LEASES, NODES, PODS
from podstatus.apiserver.strategies.by_resource import selectable_fields

LABELS = {"app": "web", "tier": "2", "empty": "", "in": "x"}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        (" \t\n", True),
        ("app", True),
        ("other", False),
        ("!app", False),
        ("! other", True),
        ("app=web", True),
        ("app==web", True),
        ("app = web , tier=2", True),
        ("app=web,tier=3", False),
        ("app!=web", False),
        ("other!=web", True),
        ("empty=", True),
        ("empty=,app", True),
        ("other=", False),
        ("app in (web,db)", True),
        ("app in(db)", False),
        ("other in (x)", False),
        ("app notin (web)", False),
        ("other notin (x)", True),
        ("empty in ()", True),
        ("empty in (,)", True),
        ("empty in (x,,y)", True),
        ("app in (x,)", False),
        ("tier>1", True),
        ("tier > 2", False),
        ("tier<10", True),
        ("app>1", False),
        ("other<1", False),
        ("in in (x)", True),
        ("in=x,in notin (in,notin)", True),
    ],
)
def test_label_selector_selects(text: str, selected: bool) -> None:
    assert parse_label_selector(text).matches(LABELS) is selected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("==", "found '==', expected: !, identifier, or 'end of string'"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        (
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        (
            "app in (",
            "unable to parse requirement: found '', expected: ',', ')' or identifier",
        ),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b,=", "unable to parse requirement: found '=', expected: ',', or identifier"),
        (
            "a>x",
            (
                'unable to parse requirement: values[0]: Invalid value: "x": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            ),
        ),
        (
            "/b",
            (
                'unable to parse requirement: <nil>: Invalid value: "/b": '
                "prefix part must be non-empty"
            ),
        ),
    ],
)
def test_label_selector_that_cannot_be_read_is_a_bad_request(text: str, why: str) -> None:
    with pytest.raises(StatusError) as caught:
        parse_label_selector(text)
    assert (caught.value.code, caught.value.message) == (400, why)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a/b/c", '"a/b/c": a valid label key must consist of'),
        ("-a", '"-a": name part must consist of'),
        ("Ab/c", '"Ab/c": prefix part a lowercase RFC 1123 subdomain must'),
        ("a" * 64, "name part must be no more than 63 bytes"),
        ("a/" + "é", "name part must consist of"),
        ("a=" + "b" * 64, "values[0][a]: Invalid value: "),
        ("a in (b,-,c-)", "[values[0][a]: Invalid value: "),
        ("a in (b,-)", 'values[0][a]: Invalid value: "-": a valid label must be'),
    ],
)
def test_keys_and_values_of_label_selectors_must_be_possible(text: str, what: str) -> None:
    with pytest.raises(StatusError, match=r"^unable to parse requirement: ") as caught:
        parse_label_selector(text)
    assert what in caught.value.message


@pytest.mark.parametrize("number", [str(2**63), "9" * 5000])
def test_numbers_beyond_64_bits_are_not_compared(number: str) -> None:
    assert not parse_label_selector("n>1").matches({"n": number})


WORDS = st.text(string.ascii_letters + string.digits, min_size=1, max_size=8)


@given(WORDS, st.sets(WORDS, min_size=1), st.dictionaries(WORDS, WORDS))
def test_in_and_notin_are_opposites(key: str, values: set[str], labels: dict[str, str]) -> None:
    listed = ", ".join(values)
    inside = parse_label_selector(f"{key} in ({listed})").matches(labels)
    assert inside is not parse_label_selector(f"{key} notin ({listed})").matches(labels)
    assert inside is (labels.get(key) in values)


def refusal(parse: Callable[[], object]) -> int:
    """Return the status code of the rejection, 200 if there is none."""
    try:
        parse()
    except StatusError as problem:
        return problem.code
    return 200


@given(st.text(max_size=30) | st.text("a=!(),<> \\", max_size=12))
def test_any_text_is_a_selector_or_a_bad_request(text: str) -> None:
    assert refusal(lambda: parse_label_selector(text)) in (200, 400)
    assert refusal(lambda: parse_field_selector(text, PODS)) in (200, 400)


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        (",,", True),
        ("=", True),
        ("metadata.name=a", True),
        ("metadata.name==a", True),
        ("metadata.name!=a", False),
        ("metadata.namespace=ns,spec.nodeName=n1", True),
        ("spec.host=n1", True),
        ("status.phase!=Running", True),
        ("status.phase=", True),
        ("spec.nodeName=n1,metadata.name=b", False),
    ],
)
def test_field_selector_selects(text: str, selected: bool) -> None:
    document = {"metadata": {"name": "a", "namespace": "ns"}, "spec": {"nodeName": "n1"}}
    fields = selectable_fields("pods", document)
    assert parse_field_selector(text, PODS).matches(fields) is selected


def test_values_of_fields_may_be_escaped() -> None:
    selector = parse_field_selector(r"status.phase=a\,b\=c\\,metadata.name=x", PODS)
    assert selector.requirements == (
        FieldRequirement("metadata.name", "x"),
        FieldRequirement("status.phase", "a,b=c\\"),
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("spec.bogus=1", "field label not supported: spec.bogus"),
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
        (r"metadata.name=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("metadata.name=a\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_field_selector_that_cannot_be_used_is_a_bad_request(text: str, why: str) -> None:
    with pytest.raises(StatusError) as caught:
        parse_field_selector(text, PODS)
    assert (caught.value.code, caught.value.message) == (400, why)


def test_what_can_be_selected_depends_on_the_resource() -> None:
    with pytest.raises(StatusError, match=r"field label not supported: metadata\.namespace"):
        parse_field_selector("metadata.namespace=a", NODES)
    with pytest.raises(StatusError) as caught:
        parse_field_selector("spec.holderIdentity=a", LEASES)
    assert caught.value.message == (
        '"spec.holderIdentity" is not a known field selector: '
        'only "metadata.name", "metadata.namespace"'
    )
