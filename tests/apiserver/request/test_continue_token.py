import json
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.request.continue_token import (
    NEWEST,
    decode_continue,
    encode_continue,
)
from podstatus.apiserver.request.list_options import parse_list_options

NAMES = st.text("abc.-0", min_size=1, max_size=20).filter(lambda name: name not in (".", ".."))


@given(st.integers(1, 2**63 - 1) | st.just(NEWEST), st.just("") | NAMES, NAMES)
def test_token_is_read_as_it_was_written(version: int, namespace: str, name: str) -> None:
    token = encode_continue(version, (namespace, name))
    assert decode_continue(token) == (version, (namespace, name))
    assert "=" not in token


def encoded(content: object) -> str:
    return urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def test_token_is_what_the_real_server_would_make() -> None:
    assert encode_continue(7, ("ns", "a")) == (
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Nywic3RhcnQiOiJucy9hXHUwMDAwIn0"
    )


V1 = "meta.k8s.io/v1"


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("!", ": illegal base64 data"),
        ("abcde", ": illegal base64 data"),
        ("abcd", ": "),
        (encoded([]), ": "),
        (encoded({}), ": server does not recognize this encoded version "),
        (encoded({"v": "v2", "rv": 1, "start": "a"}), ": server does not recognize"),
        (encoded({"v": V1, "start": "a"}), ": incorrect encoded start resourceVersion"),
        (encoded({"v": V1, "rv": 1}), ": encoded start key empty"),
        (encoded({"v": V1, "rv": 2**70, "start": "a"}), ": "),
        (encoded({"v": V1, "rv": "1", "start": "a"}), ": "),
        (encoded({"v": V1, "rv": 1, "start": "../secrets/a"}), ": ../secrets/a"),
        (encoded({"v": V1, "rv": 1, "start": "a/./b"}), ": a/./b"),
        (encoded({"v": V1, "rv": 1, "start": "a//b"}), ": a//b"),
        (encoded({"v": V1, "rv": 1, "start": "a/b/c"}), ": a/b/c"),
        (encoded({"v": V1, "rv": 1, "start": "a/"}), ": a/"),
    ],
)
def test_damaged_token_is_a_bad_request(token: str, why: str) -> None:
    with pytest.raises(StatusError) as caught:
        decode_continue(token)
    assert caught.value.code == 400
    message = caught.value.message
    assert message.startswith(f"invalid continue token: continue key is not valid{why}")


@given(st.text(max_size=60) | st.binary(max_size=40).map(lambda d: urlsafe_b64encode(d).decode()))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(StatusError, match="continue key is not valid"):
        decode_continue(text)


@pytest.mark.parametrize(("text", "limit"), [("0", 0), ("500", 500), ("+2", 2), ("-1", 0)])
def test_limit_is_a_number(text: str, limit: int) -> None:
    assert parse_list_options({"limit": text}).limit == limit


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("", 'strconv.ParseInt: parsing "": invalid syntax'),
        ("1_0", 'strconv.ParseInt: parsing "1_0": invalid syntax'),
        ("٣", 'strconv.ParseInt: parsing "٣": invalid syntax'),
        (str(2**63), f'strconv.ParseInt: parsing "{2**63}": value out of range'),
        ("9" * 5000, f'strconv.ParseInt: parsing "{"9" * 40}": value out of range'),
    ],
)
def test_limit_that_is_no_number_is_a_bad_request(text: str, why: str) -> None:
    with pytest.raises(StatusError) as caught:
        parse_list_options({"limit": text})
    assert (caught.value.code, caught.value.message) == (400, why)
