"""Conflicts of host ports."""

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import ContainerPort
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.workers.admission.resource_fit import has_free_ports, sum_requests
from tests.workers.pods import a_pod, sidecar


def on(port: ContainerPort) -> PodSpec:
    return a_pod(sidecar("a", ports=(port,))).spec


WEB = ContainerPort(host_port=80)


@pytest.mark.parametrize(
    ("taken", "free"),
    [
        (ContainerPort(host_port=80), False),
        (ContainerPort(host_port=81), True),
        (ContainerPort(container_port=80), True),
        (ContainerPort(host_port=80, protocol="TCP"), False),
        (ContainerPort(host_port=80, protocol="UDP"), True),
        (ContainerPort(host_port=80, host_ip="127.0.0.1"), False),
        (ContainerPort(host_port=80, host_ip="0.0.0.0"), False),  # noqa: S104
    ],
)
def test_a_port_is_taken_once(taken: ContainerPort, free: bool) -> None:
    assert has_free_ports(on(WEB), sum_requests([on(taken)]).ports) is free
    assert has_free_ports(on(taken), sum_requests([on(WEB)]).ports) is free


def test_different_addresses_have_ports_of_their_own() -> None:
    here = ContainerPort(host_port=80, host_ip="127.0.0.1")
    there = ContainerPort(host_port=80, host_ip="127.0.0.2")
    assert has_free_ports(on(here), sum_requests([on(there)]).ports)
    assert not has_free_ports(on(here), sum_requests([on(here)]).ports)


def test_sidecars_have_ports_and_init_containers_have_not() -> None:
    side = sidecar("s", ports=(WEB,))
    init = structs.replace(side, restart_policy=None)
    assert not has_free_ports(on(WEB), sum_requests([a_pod("a", init=[side]).spec]).ports)
    assert has_free_ports(on(WEB), sum_requests([a_pod("a", init=[init]).spec]).ports)
    assert has_free_ports(on(WEB), [])
