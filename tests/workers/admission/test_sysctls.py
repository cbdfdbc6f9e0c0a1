"""Safe sysctls are admitted, all others are not."""

from typing import Any

import pytest

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.node import Node
from podstatus.kube.objects.pod import Pod
from podstatus.kube.sysctls import normalize_sysctl
from podstatus.workers.admission.admit import AdmissionRejected, Admitted, admit
from podstatus.workers.admission.resource_fit import RequestedResources
from podstatus.workers.admission.sysctls import find_forbidden_sysctl

PORTS, SHARED_MEMORY = "net.ipv4.ip_local_port_range", "kernel.shm_rmid_forced"


def pod(*names: str, **spec: Any) -> Pod:
    sysctls = [{"name": name, "value": "1"} for name in names]
    return from_document({"spec": {"securityContext": {"sysctls": sysctls}} | spec}, Pod)


@pytest.mark.parametrize(
    ("names", "spec", "reason"),
    [
        ((), {}, None),
        ((PORTS, SHARED_MEMORY), {}, None),
        (("net/ipv4/ip_local_port_range",), {}, None),
        ((SHARED_MEMORY, "kernel.msgmax"), {}, '"kernel.msgmax" not allowlisted'),
        (("kernel/msgmax",), {}, '"kernel.msgmax" not allowlisted'),
        (("net.ipv4.tcp_mem",), {}, '"net.ipv4.tcp_mem" not allowlisted'),
        ((PORTS,), {"hostNetwork": True}, f'"{PORTS}" not allowed with host net enabled'),
        ((PORTS,), {"hostIPC": True}, None),
        (
            (SHARED_MEMORY,),
            {"hostIPC": True},
            f'"{SHARED_MEMORY}" not allowed with host ipc enabled',
        ),
        ((SHARED_MEMORY,), {"hostNetwork": True}, None),
    ],
)
def test_a_sysctl_is_forbidden_as_by_the_kubelet(
    names: tuple[str, ...], spec: dict[str, Any], reason: str | None
) -> None:
    assert find_forbidden_sysctl(pod(*names, **spec).spec) == reason


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("kernel.shm_rmid_forced", "kernel.shm_rmid_forced"),
        ("kernel/shm_rmid_forced", "kernel.shm_rmid_forced"),
        ("net.ipv4.conf.eno2/100.rp_filter", "net.ipv4.conf.eno2/100.rp_filter"),
        ("net/ipv4/conf/eno2.100/rp_filter", "net.ipv4.conf.eno2/100.rp_filter"),
        ("kernel", "kernel"),
    ],
)
def test_names_are_normalized(name: str, normal: str) -> None:
    assert normalize_sysctl(name) == normal


def test_a_pod_with_a_forbidden_sysctl_is_rejected() -> None:
    for name, expected in (
        (PORTS, Admitted()),
        (
            "kernel.msgmax",
            AdmissionRejected(
                reason="SysctlForbidden",
                message='forbidden sysctl: "kernel.msgmax" not allowlisted',
            ),
        ),
    ):
        node = from_document({"status": {"allocatable": {"pods": "110"}}}, Node)
        result = admit(pod(name), node=node, others=RequestedResources(), max_pods=110)
        assert result == expected
