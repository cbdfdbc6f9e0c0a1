"""Cross-origin requests, Host headers and loopback addresses."""

import pytest

from podstatus.web.auth.origin import check_origin, is_loopback, is_own_host
from podstatus.web.errors import HttpError

NAMES = ("node-1", "Node-1.example.com", "*.nodes.example.com")


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:10250",
        "localhost.",
        "127.0.0.1:10250",
        "10.0.0.7",
        "[::1]:10250",
        "[fe80::1]",
        "node-1:10250",
        "NODE-1.example.com",
        "a.nodes.example.com:1",
    ],
)
def test_addresses_localhost_and_names_of_the_node_are_ours(host: str) -> None:
    assert is_own_host(host, NAMES)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:10250",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "node-1.evil.example",
        "nodes.example.com",
        "a.b.nodes.example.com",
        "node-2",
        "*.nodes.example.com.evil",
    ],
)
def test_other_names_are_not(host: str) -> None:
    assert not is_own_host(host, NAMES)
    with pytest.raises(HttpError) as refused:
        check_origin({"Host": host}, NAMES)
    assert refused.value.code == 421
    assert host not in refused.value.text


@pytest.mark.parametrize("host", ["", "a@localhost", "localhost/x", "[::1", "localhost:p", "?"])
def test_a_host_that_is_none_is_a_bad_request(host: str) -> None:
    with pytest.raises(HttpError) as refused:
        check_origin({"Host": host}, NAMES)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://dashboard"}, True),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": ""}, False),
        ({"Origin": "https://localhost:10250"}, True),
        ({"Origin": "https://localhost"}, False),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": ""}, False),
        ({"Origin": "https://dashboard", "X-Forwarded-For": "10.0.0.1"}, True),
        ({"Sec-Fetch-Site": "cross-site", "X-Forwarded-For": "10.0.0.1"}, True),
    ],
)
def test_cross_site_pages_are_rejected(headers: dict[str, str], allowed: bool) -> None:
    asked = {"Host": "localhost:10250"} | headers
    if allowed:
        check_origin(asked, NAMES)
    else:
        with pytest.raises(HttpError) as refused:
            check_origin(asked, NAMES)
        assert refused.value.code == 403


def test_a_forwarded_request_has_to_name_this_node() -> None:
    with pytest.raises(HttpError) as refused:
        check_origin({"Host": "evil.example", "X-Forwarded-For": "10.0.0.1"}, NAMES)
    assert refused.value.code == 421


def test_a_request_without_host_is_accepted() -> None:
    check_origin({}, NAMES)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (("127.0.0.1", 1), True),
        (("127.8.0.1", 1), True),
        (("::1", 1, 0, 0), True),
        (("::ffff:127.0.0.1", 1, 0, 0), True),
        (("10.0.0.1", 1), False),
        (("::ffff:10.0.0.1", 1, 0, 0), False),
        (("fe80::1%eth0", 1, 0, 0), False),
        (("host", 1), False),
        ("/run/socket", False),
        (None, False),
        ((), False),
    ],
)
def test_only_both_ends_on_this_machine_count(end: object, expected: bool) -> None:
    assert is_loopback(end) is expected
