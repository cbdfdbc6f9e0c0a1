"""/etc/hosts of containers is what the kubelet writes."""

from typing import Any

import pytest

from podstatus.runtime.process.spec.hosts_file import hosts_file, needs_hosts_file
from tests.support.processes.process_pods import pod_of

MANAGED = """\
# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
10.0.0.1\tweb
"""
ALIASES = [
    {"ip": "1.2.3.4", "hostnames": ["foo", "bar"]},
    {"ip": "5.6.7.8", "hostnames": ["baz"]},
]
ALIAS_LINES = "\n# Entries added by HostAliases.\n1.2.3.4\tfoo\tbar\n5.6.7.8\tbaz\n"
HOST_FILE = "127.0.1.1 laptop\n"


@pytest.mark.parametrize(
    ("spec", "content"),
    [
        ({}, MANAGED),
        ({"hostAliases": []}, MANAGED),
        ({"hostAliases": ALIASES}, MANAGED + ALIAS_LINES),
        (
            {"hostNetwork": True},
            f"# Kubernetes-managed hosts file (host network).\n{HOST_FILE}",
        ),
        (
            {"hostNetwork": True, "hostAliases": ALIASES},
            f"# Kubernetes-managed hosts file (host network).\n{HOST_FILE}{ALIAS_LINES}",
        ),
    ],
)
def test_the_content_is_the_kubelets(spec: dict[str, Any], content: str) -> None:
    assert hosts_file(pod_of(**spec), "web", ["10.0.0.1"], HOST_FILE) == content


@pytest.mark.parametrize(
    ("host_network", "pod_ips", "targets", "is_needed"),
    [
        (False, ["10.0.0.1"], ["/data"], True),
        (False, [], ["/data"], False),
        (True, [], ["/data"], True),
        (False, ["10.0.0.1"], ["/data", "/etc/hosts"], False),
        (False, ["10.0.0.1"], ["/etc"], False),
        (False, ["10.0.0.1"], ["/etc/hosts-original"], True),
    ],
)
def test_a_container_with_a_volume_there_gets_none(
    host_network: bool, pod_ips: list[str], targets: list[str], is_needed: bool
) -> None:
    pod = pod_of(hostNetwork=host_network)
    assert needs_hosts_file(pod, pod_ips, targets) is is_needed
