"""The resolver configuration of a pod.

Upstream: GetPodDNS and appendDNSConfig, pkg/kubelet/network/dns/dns.go v1.36.4. There is no cluster
DNS here: ClusterFirst and ClusterFirstWithHostNet fall back to Default, as upstream's do without
`clusterDNS`.
"""

from collections.abc import Iterable

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodDNSConfig
from podstatus.runtime.cri.api.sandboxes import CriDNSConfig

_NONE = "None"
_MAX_SERVERS, _MAX_SEARCHES = 3, 32
"""Limits of the resolver library, which upstream applies, too."""


def pod_dns(pod: Pod, host: CriDNSConfig) -> CriDNSConfig:
    """Return the pod's configuration; `host` is that of the machine."""
    base = CriDNSConfig() if pod.spec.dns_policy == _NONE else host
    config = pod.spec.dns_config or PodDNSConfig()
    options = dict(_option(text) for text in base.options)
    options |= {option.name: option.value for option in config.options or ()}
    return CriDNSConfig(
        servers=_unique((*base.servers, *(config.nameservers or ())))[:_MAX_SERVERS],
        searches=_unique((*base.searches, *(config.searches or ())))[:_MAX_SEARCHES],
        options=tuple(
            name if value is None else f"{name}:{value}" for name, value in options.items()
        ),
    )


def parse_resolv_conf(text: str) -> CriDNSConfig:
    """Return the configuration of a resolv.conf; the last `search` and all `options` count."""
    servers: list[str] = []
    searches: tuple[str, ...] = ()
    options: list[str] = []
    for line in text.splitlines():
        keyword, *values = line.split("#", 1)[0].split(";", 1)[0].split() or [""]
        if keyword == "nameserver" and values:
            servers.append(values[0])
        elif keyword == "search":
            searches = tuple(values)
        elif keyword == "options":
            options += values
    return CriDNSConfig(
        servers=_unique(servers)[:_MAX_SERVERS],
        searches=searches[:_MAX_SEARCHES],
        options=_unique(options),
    )


def _option(text: str) -> tuple[str, str | None]:
    name, colon, value = text.partition(":")
    return name, value if colon else None


def _unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
