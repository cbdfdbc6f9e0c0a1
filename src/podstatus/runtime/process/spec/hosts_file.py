"""The content of /etc/hosts in isolated containers.

Upstream: managedHostsFileContent, nodeHostsFileContent and makeMounts,
pkg/kubelet/kubelet_pods.go v1.36.4. Differences: a pod's subdomain is not added, as there is no
cluster domain; a container that mounts a volume at /etc has the hosts file of its volume.
"""

from collections.abc import Iterable, Sequence

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import HostAlias

HOSTS_PATH = "/etc/hosts"
_HEADER = "# Kubernetes-managed hosts file.\n"
_HOST_NETWORK_HEADER = "# Kubernetes-managed hosts file (host network).\n"
_ALIASES_HEADER = "\n# Entries added by HostAliases.\n"
_STANDARD_ENTRIES = (
    ("127.0.0.1", "localhost"),
    ("::1", "localhost ip6-localhost ip6-loopback"),
    ("fe00::0", "ip6-localnet"),
    ("fe00::0", "ip6-mcastprefix"),
    ("fe00::1", "ip6-allnodes"),
    ("fe00::2", "ip6-allrouters"),
)


def needs_hosts_file(pod: Pod, pod_ips: Sequence[str], targets: Iterable[str]) -> bool:
    """Return whether a container with volumes mounted at `targets` gets a hosts file."""
    has_own = any(target in (HOSTS_PATH, "/etc") for target in targets)
    return not has_own and bool(pod_ips or pod.spec.host_network)


def hosts_file(pod: Pod, hostname: str, pod_ips: Iterable[str], host_file: str) -> str:
    """Return the content; `host_file` is that of the host, for pods on the host network."""
    aliases = _alias_entries(pod.spec.host_aliases or ())
    if pod.spec.host_network:
        return f"{_HOST_NETWORK_HEADER}{host_file}{aliases}"
    entries = (*_STANDARD_ENTRIES, *((ip, hostname) for ip in pod_ips))
    return _HEADER + "".join(f"{ip}\t{names}\n" for ip, names in entries) + aliases


def _alias_entries(aliases: Iterable[HostAlias]) -> str:
    lines = [f"{alias.ip}\t{chr(9).join(alias.hostnames or ())}\n" for alias in aliases]
    return _ALIASES_HEADER + "".join(lines) if lines else ""
