"""Sandboxes and containers are described to the runtime as the kubelet does it.

Upstream: TestGeneratePodSandboxConfig, TestGenerateContainerConfig, labels_test.go, v1.36.4.
"""

from typing import Any

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import (
    Container,
    ContainerPort,
    ExecAction,
    Lifecycle,
    LifecycleHandler,
    ResourceRequirements,
)
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import (
    PodDNSConfig,
    PodDNSConfigOption,
    PodSecurityContext,
    PodSpec,
    Sysctl,
)
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.cri.api.containers import CriContainerMetadata, CriKeyValue, CriMount
from podstatus.runtime.cri.api.images import CriImage, CriImageSpec
from podstatus.runtime.cri.api.sandboxes import (
    CriDNSConfig,
    CriPodSandboxConfig,
    CriPodSandboxMetadata,
    CriPortMapping,
)
from podstatus.runtime.cri.model.container import ContainerInputs, container_config
from podstatus.runtime.cri.model.dns import parse_resolv_conf
from podstatus.runtime.cri.model.sandbox import sandbox_config
from podstatus.testing.builders import make_pod

HOST_DNS = CriDNSConfig(servers=("10.1.1.1",), searches=("lan",), options=("ndots:1", "rotate"))


def a_pod(**spec: Any) -> Pod:
    pod = structs.replace(make_pod("web", uid="u-1"), spec=PodSpec(**spec))
    return with_labels(pod, {"app": "web"})


def with_labels(pod: Pod, labels: dict[str, str]) -> Pod:
    metadata = structs.replace(pod.metadata, labels=labels, annotations={"note": "x"})
    return structs.replace(pod, metadata=metadata)


def sandbox(pod: Pod) -> CriPodSandboxConfig:
    return sandbox_config(pod, attempt=2, log_directory="/logs/web", host_dns=HOST_DNS)


def test_a_sandbox() -> None:
    context = PodSecurityContext(sysctls=(Sysctl(name="net.x", value="1"),))
    config = sandbox(a_pod(security_context=context))
    assert config.metadata == CriPodSandboxMetadata(
        name="web", uid="u-1", namespace="default", attempt=2
    )
    assert (config.hostname, config.log_directory) == ("web", "/logs/web")
    assert config.labels == {
        "app": "web",
        "io.kubernetes.pod.name": "web",
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": "u-1",
    }
    assert config.annotations == {"note": "x"}
    assert config.linux is not None
    assert config.linux.sysctls == {"net.x": "1"}


def test_the_labels_of_a_pod_cannot_change_its_identity() -> None:
    pod = with_labels(a_pod(), {"io.kubernetes.pod.uid": "another"})
    assert sandbox(pod).labels["io.kubernetes.pod.uid"] == "u-1"


@pytest.mark.parametrize(
    ("spec", "hostname"),
    [
        ({}, "web"),
        ({"hostname": "h"}, "h"),
        ({"hostname": "h", "hostname_override": "o"}, "o"),
        ({"hostname": f"{'a' * 62}.b"}, "a" * 62),
        ({"hostname": "h", "host_network": True}, ""),
    ],
)
def test_the_hostname(spec: dict[str, Any], hostname: str) -> None:
    assert sandbox(a_pod(**spec)).hostname == hostname


def test_ports() -> None:
    ports = (
        ContainerPort(container_port=80, host_port=8080),
        ContainerPort(name="dns", container_port=53, protocol="UDP", host_ip="127.0.0.1"),
        ContainerPort(name="dns", container_port=54),
        ContainerPort(container_port=80, host_port=8080, protocol="TCP"),
    )
    assert sandbox(a_pod(containers=(Container(name="a", ports=ports),))).port_mappings == (
        CriPortMapping(container_port=80, host_port=8080),
        CriPortMapping(protocol=1, container_port=53, host_ip="127.0.0.1"),
    )


@pytest.mark.parametrize(
    ("policy", "config", "expected"),
    [
        ("ClusterFirst", None, HOST_DNS),
        ("Default", None, HOST_DNS),
        ("None", PodDNSConfig(nameservers=("1.1.1.1",)), CriDNSConfig(servers=("1.1.1.1",))),
        (
            "Default",
            PodDNSConfig(
                nameservers=("1.1.1.1", "10.1.1.1"),
                searches=("a.b",),
                options=(
                    PodDNSConfigOption(name="ndots", value="5"),
                    PodDNSConfigOption(name="edns0"),
                ),
            ),
            CriDNSConfig(
                servers=("10.1.1.1", "1.1.1.1"),
                searches=("lan", "a.b"),
                options=("ndots:5", "rotate", "edns0"),
            ),
        ),
    ],
)
def test_dns(policy: str, config: PodDNSConfig | None, expected: CriDNSConfig) -> None:
    assert sandbox(a_pod(dns_policy=policy, dns_config=config)).dns_config == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", CriDNSConfig()),
        (
            "# comment\nnameserver 10.1.1.1 # here\nsearch old\nsearch lan\noptions ndots:1 rotate",
            HOST_DNS,
        ),
        ("nameserver\nsearch\noptions\nsortlist x\n;x\n", CriDNSConfig()),
        ("nameserver a\n" * 5, CriDNSConfig(servers=("a",))),
        ("nameserver a\nnameserver b\nnameserver c\nnameserver d", ("a", "b", "c")),
    ],
)
def test_resolv_conf(text: str, expected: CriDNSConfig | tuple[str, ...]) -> None:
    config = parse_resolv_conf(text)
    assert expected in (config, config.servers)


CONTAINER = Container(
    name="app",
    image="busybox:1",
    working_dir="/w",
    tty=True,
    stdin=True,
    ports=(ContainerPort(container_port=80, protocol="TCP"),),
    termination_message_path="/dev/termination-log",
    termination_message_policy="File",
    lifecycle=Lifecycle(pre_stop=LifecycleHandler(exec=ExecAction(command=("/bye",)))),
    resources=ResourceRequirements(requests={"memory": Quantity("64Mi")}),
)
INPUTS = ContainerInputs(
    image=CriImage(id="sha256:abc"),
    command=("/bin/sh",),
    args=("-c", "x"),
    env={"A": "1", "RAW": "\udcff"},
    mounts=(CriMount(container_path="/v", host_path="/pods/v", readonly=True),),
    memory_capacity=8_000_000_000,
)


def test_a_container() -> None:
    pod = a_pod(containers=(CONTAINER,), termination_grace_period_seconds=30)
    config = container_config(pod, CONTAINER, INPUTS, restart_count=3)
    assert config.metadata == CriContainerMetadata(name="app", attempt=3)
    assert config.image == CriImageSpec(image="sha256:abc", user_specified_image="busybox:1")
    assert (config.command, config.args) == (("/bin/sh",), ("-c", "x"))
    assert (config.working_dir, config.tty, config.stdin, config.stdin_once) == (
        *("/w", True),
        *(True, False),
    )
    assert config.envs == (CriKeyValue(key="A", value=b"1"), CriKeyValue(key="RAW", value=b"\xff"))
    assert (config.mounts, config.log_path) == (INPUTS.mounts, "app/3.log")
    assert config.labels == {
        "io.kubernetes.container.name": "app",
        "io.kubernetes.pod.name": "web",
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": "u-1",
    }
    assert config.annotations == {
        "io.kubernetes.container.restartCount": "3",
        "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
        "io.kubernetes.container.terminationMessagePolicy": "File",
        "io.kubernetes.container.preStopHandler": '{"exec":{"command":["/bye"]}}',
        "io.kubernetes.container.ports": '[{"containerPort":80,"protocol":"TCP"}]',
        "io.kubernetes.pod.terminationGracePeriod": "30",
        "podstatus.dev/memory-request": "64Mi",
    }
