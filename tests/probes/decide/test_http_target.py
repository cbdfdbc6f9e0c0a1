"""URL and headers of HTTP checks."""

import pytest

from podstatus.kube.objects.containers import Container, ContainerPort, HTTPGetAction, HTTPHeader
from podstatus.probes.decide.http_target import BadTargetError, http_target, resolve_container_port

WEB = Container(name="a", ports=(ContainerPort(name="web", container_port=8080),))


def url(**action: object) -> str:
    return http_target(HTTPGetAction(port=80, **action), WEB, pod_ip="10.0.0.1").url  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "wire"),
    [
        ("", "/"),
        ("/", "/"),
        ("healthz", "/healthz"),
        ("/a b?c=d e", "/a%20b?c=d%20e"),
        ("/already%20so", "/already%20so"),
        ("?only=query", "?only=query"),
        ("/x#fragment", "/x"),
        ("/ümlaut", "/%C3%BCmlaut"),
        ('/"quoted"\r\nHost: evil', "/%22quoted%22%0D%0AHost:%20evil"),
    ],
)
def test_path_is_encoded_as_a_request_carries_it(path: str, wire: str) -> None:
    assert url(path=path) == f"http://10.0.0.1:80{wire}"


@pytest.mark.parametrize(
    ("action", "place"),
    [
        ({}, "http://10.0.0.1:80/"),
        ({"scheme": "HTTPS"}, "https://10.0.0.1:80/"),
        ({"host": "example.test"}, "http://example.test:80/"),
        ({"host": "fd00::1"}, "http://[fd00::1]:80/"),
    ],
)
def test_host_of_the_spec_is_stronger_than_the_pod_s_address(
    action: dict[str, str], place: str
) -> None:
    assert url(**action) == place


@pytest.mark.parametrize(("port", "number"), [(80, 80), ("web", 8080), ("81", 81)])
def test_port_is_found_by_number_or_name(port: int | str, number: int) -> None:
    assert resolve_container_port(port, WEB) == number


@pytest.mark.parametrize("port", [0, 65536, -1, "0", "nowhere", ""])
def test_invalid_ports_raise_an_error(port: int | str) -> None:
    with pytest.raises(BadTargetError):
        resolve_container_port(port, WEB)


def test_a_pod_without_ip_and_an_unknown_scheme_raise_errors() -> None:
    with pytest.raises(BadTargetError, match="no IP address"):
        http_target(HTTPGetAction(port=80), WEB, pod_ip="")
    with pytest.raises(BadTargetError, match="scheme"):
        url(scheme="ftp")


def headers(*given: tuple[str, str], purpose: str = "probe") -> tuple[tuple[str, str], ...]:
    action = HTTPGetAction(
        port=80, http_headers=tuple(HTTPHeader(name=name, value=value) for name, value in given)
    )
    return http_target(action, WEB, pod_ip="10.0.0.1", purpose=purpose).headers


def test_default_user_agent_unless_the_spec_sets_one() -> None:
    assert headers() == (("User-Agent", "kube-probe/1.36"), ("Accept", "*/*"))
    assert headers(purpose="lifecycle")[0] == ("User-Agent", "kube-lifecycle/1.36")
    own = (("user-agent", "mine"), ("accept", "text/plain"))
    assert headers(*own) == own


def test_empty_accept_takes_the_header_away() -> None:
    assert headers(("accept", "")) == (("User-Agent", "kube-probe/1.36"),)


def test_headers_keep_their_order_and_may_come_again() -> None:
    assert headers(("X", "1"), ("Y", "2"), ("X", "3"))[:3] == (("X", "1"), ("Y", "2"), ("X", "3"))
