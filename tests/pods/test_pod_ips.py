"""The addresses of a pod and its node, and their order."""

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.objects.pod_status import HostIP, PodIP, PodStatus
from podstatus.pods.pod_ips import sort_pod_ips, with_host_ips, with_pod_ips

V4, V4_TOO, V6, V6_TOO = "10.1.2.3", "10.9.9.9", "fd00::3", "fd00::9"


@pytest.mark.parametrize(
    ("ips", "host_ips", "expected"),
    [
        ([], [V4], []),
        ([V4], [V4_TOO], [V4]),
        ([V4, V4_TOO], [V4_TOO], [V4]),
        ([V6, V4], [V4_TOO], [V4, V6]),
        ([V4, V4_TOO, V6, V6_TOO], [V6_TOO], [V6, V4]),
        ([V6, V4], [], [V4, V6]),
        ([V6], [V4], [V6]),
        ([V4], [V6], [V4]),
    ],
)
def test_a_pod_shows_one_address_of_each_family_and_that_of_its_node_first(
    ips: list[str], host_ips: list[str], expected: list[str]
) -> None:
    assert sort_pod_ips(ips, host_ips) == expected


@pytest.mark.parametrize(
    ("spelled", "canonical"),
    [
        ("010.001.002.003", "10.1.2.3"),
        ("00000001.2.3.4", "1.2.3.4"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("::ffff:010.1.2.3", "10.1.2.3"),
        ("0:0:0:0:0:ffff:a01:203", "10.1.2.3"),
        ("::10.1.2.3", "::a01:203"),
        ("FD00:1:0::3", "fd00:1::3"),
        ("fd00::00001", "fd00::1"),
        ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("::", "::"),
    ],
)
def test_addresses_are_normalized(spelled: str, canonical: str) -> None:
    assert sort_pod_ips([spelled], []) == [canonical]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pod",
        "1.2.3",
        "1.2.3.4.5",
        "256.1.1.1",
        "1.2.3.4/24",
        " 1.2.3.4",
        "fe80::1%eth0",
        "1::2::3",
    ],
)
def test_what_is_no_address_is_passed_over(text: str) -> None:
    assert sort_pod_ips([text, V4], []) == [V4]
    assert with_host_ips(PodStatus(), [text], host_network=True) == PodStatus()


@given(
    st.lists(st.ip_addresses().map(str), max_size=6),
    st.lists(st.ip_addresses().map(str), max_size=2),
)
def test_what_is_shown_was_reported_and_no_family_is_shown_twice(
    ips: list[str], host_ips: list[str]
) -> None:
    chosen = sort_pod_ips(ips, host_ips)
    families = [":" in ip for ip in chosen]
    assert len(set(families)) == len(families)
    assert bool(chosen) == bool(ips)
    assert sort_pod_ips(chosen, host_ips) == chosen


@given(st.ip_addresses())
def test_padding_does_not_change_an_address(address: IPv4Address | IPv6Address) -> None:
    separator = "." if address.version == 4 else ":"
    padded = separator.join(f"00{part}" for part in address.exploded.split(separator))
    assert sort_pod_ips([padded], []) == sort_pod_ips([str(address)], [])


def test_the_first_address_is_the_address() -> None:
    status = with_pod_ips(PodStatus(), [V6, V4], [V4])
    assert (status.pod_ip, status.pod_ips) == (V4, (PodIP(ip=V4), PodIP(ip=V6)))


def test_a_node_shows_one_address_of_each_family() -> None:
    status = with_host_ips(PodStatus(), [V4, V4_TOO, V6], host_network=False)
    assert (status.host_ip, status.host_ips) == (V4, (HostIP(ip=V4), HostIP(ip=V6)))
    assert (status.pod_ip, status.pod_ips) == ("", None)


@pytest.mark.parametrize(
    ("own", "host_ips", "expected"),
    [
        pytest.param([], [V4], [V4], id="none yet"),
        pytest.param([], [V4, V6], [V4, V6], id="none yet, two families"),
        pytest.param([V4_TOO], [V4], [V4_TOO], id="what is set stays"),
        pytest.param([V4_TOO], [V4, V6], [V4_TOO, V6], id="a second family is added"),
        pytest.param([V6_TOO], [V4, V6], [V6_TOO], id="not a second of one family"),
        pytest.param([V4_TOO, V6_TOO], [V4, V6], [V4_TOO, V6_TOO], id="both are set"),
    ],
)
def test_a_pod_in_its_nodes_network_has_its_nodes_addresses(
    own: list[str], host_ips: list[str], expected: list[str]
) -> None:
    status = with_pod_ips(PodStatus(), own, host_ips)
    status = with_host_ips(status, host_ips, host_network=True)
    assert [ip.ip for ip in status.pod_ips or ()] == expected
    assert status.pod_ip == expected[0]
