"""Which Services a pod sees, and what it sees of them.

The recordings of the kubelet (tests/conformance) have the rest.
"""

from typing import Any

import pytest

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.service import Service
from podstatus.runtime.process.spec.service_variables import service_variables, variables_of

API = {"name": "https", "port": 443}


def service(name: str, namespace: str, address: str = "10.0.0.1", *ports: Any) -> Service:
    spec = {"clusterIP": address, "ports": list(ports or ({"port": 80},))}
    document = {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
    return from_document(document, Service)


def pod(namespace: str, *, links: bool | None = True) -> Pod:
    return from_document(
        {"metadata": {"namespace": namespace}, "spec": {"enableServiceLinks": links}}, Pod
    )


def hosts(seen_by: Pod, *services: Service) -> dict[str, str]:
    variables = service_variables(seen_by, services)
    return {name: value for name, value in variables.items() if name.endswith("_SERVICE_HOST")}


KUBERNETES = service("kubernetes", "default", "10.0.0.1", API)
WEB, OTHER = service("web", "ns", "10.0.0.2"), service("web", "other", "10.0.0.3")


@pytest.mark.parametrize("links", [True, None])
def test_pods_see_their_namespace_and_the_api_server(links: bool | None) -> None:
    expected = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "WEB_SERVICE_HOST": "10.0.0.2"}
    assert hosts(pod("ns", links=links), WEB, OTHER, KUBERNETES) == expected


def test_without_links_pods_see_only_the_api_server() -> None:
    expected = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert hosts(pod("ns", links=False), WEB, KUBERNETES) == expected
    assert hosts(pod("default", links=False), service("web", "default"), KUBERNETES) == expected


@pytest.mark.parametrize("turned", [False, True])
def test_a_service_kubernetes_of_the_namespace_wins(turned: bool) -> None:
    services = [service("kubernetes", "ns", "10.9.9.9"), KUBERNETES]
    if turned:
        services.reverse()
    assert hosts(pod("ns"), *services) == {"KUBERNETES_SERVICE_HOST": "10.9.9.9"}
    expected = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert hosts(pod("ns", links=False), *services) == expected


@pytest.mark.parametrize("address", ["", "None"])
def test_services_without_an_address_are_skipped(address: str) -> None:
    headless = service("web", "ns", address)
    assert service_variables(pod("ns"), [headless]) == {}
    assert list(variables_of(headless)) == []


def test_all_ports_of_a_service() -> None:
    ports = ({"name": "dns-tcp", "port": 53}, {"name": "dns", "port": 53, "protocol": "UDP"})
    assert list(variables_of(service("kube-dns", "ns", "fd00::1", *ports))) == [
        ("KUBE_DNS_SERVICE_HOST", "fd00::1"),
        ("KUBE_DNS_SERVICE_PORT", "53"),
        ("KUBE_DNS_SERVICE_PORT_DNS_TCP", "53"),
        ("KUBE_DNS_SERVICE_PORT_DNS", "53"),
        ("KUBE_DNS_PORT", "tcp://[fd00::1]:53"),
        ("KUBE_DNS_PORT_53_TCP", "tcp://[fd00::1]:53"),
        ("KUBE_DNS_PORT_53_TCP_PROTO", "tcp"),
        ("KUBE_DNS_PORT_53_TCP_PORT", "53"),
        ("KUBE_DNS_PORT_53_TCP_ADDR", "fd00::1"),
        ("KUBE_DNS_PORT_53_UDP", "udp://[fd00::1]:53"),
        ("KUBE_DNS_PORT_53_UDP_PROTO", "udp"),
        ("KUBE_DNS_PORT_53_UDP_PORT", "53"),
        ("KUBE_DNS_PORT_53_UDP_ADDR", "fd00::1"),
    ]


def test_of_two_services_with_the_same_variable_the_last_by_name_wins() -> None:
    one, two = service("a", "ns", "10.0.0.1"), service("a-port", "ns", "10.0.0.2", {"port": 7})
    longer = service("a-port-80-tcp", "ns", "10.0.0.3", {"port": 9})
    for services in ([one, two, longer], [longer, two, one]):
        variables = service_variables(pod("ns"), services)
        assert variables["A_PORT_80_TCP_PORT"] == "tcp://10.0.0.3:9"
        assert variables["A_PORT"] == "tcp://10.0.0.1:80"
