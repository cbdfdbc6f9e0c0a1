"""Select the proxy for a server: from the kubeconfig, or from the environment.

Upstream: httpproxy.Config of golang.org/x/net, as client-go uses it (v0.36.4).
"""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from podstatus.client.config_errors import KubeconfigError
from podstatus.client.kubeconfig.server_url import (
    PORTS,
    ip_address,
    is_loopback,
    redact_url,
    split_url,
)


def select_proxy(server: str, proxy_url: str, environment: Mapping[str, str]) -> str | None:
    """Return the proxy for a server. `proxy_url` takes precedence, even for a loopback server.

    Raises KubeconfigError for an unsupported or invalid proxy.
    """
    if proxy_url:
        return _validate_proxy(proxy_url, "proxy-url")
    url = urlsplit(server)
    variable, value = _variable(environment, f"{url.scheme}_proxy")
    if not value or url.hostname is None or is_loopback(url.hostname):
        return None
    port = url.port or PORTS[url.scheme]
    _, exceptions = _variable(environment, "no_proxy")
    if any(_matches_rule(rule, url.hostname, port) for rule in exceptions.split(",")):
        return None
    return _validate_proxy(value if "://" in value else f"http://{value}", variable)


def _variable(environment: Mapping[str, str], name: str) -> tuple[str, str]:
    """Return the spelling and the value of a variable in upper or lower case."""
    for spelled in (name.upper(), name):
        if environment.get(spelled):
            return spelled, environment[spelled].strip()
    return name.upper(), ""


def _validate_proxy(proxy: str, source: str) -> str:
    if proxy.partition(":")[0].lower() in ("socks5", "socks5h", "socks4", "socks"):
        raise KubeconfigError(
            f"{source} is {redact_url(proxy)}, but SOCKS proxies are not supported; use an "
            "http or https proxy"
        )
    if split_url(proxy) is None:
        raise KubeconfigError(
            f"{source} is {redact_url(proxy)}, which is not a valid URL; use the form "
            "http://host:3128"
        )
    return proxy


def _matches_rule(rule: str, host: str, port: int) -> bool:
    """Whether one entry of NO_PROXY matches a server."""
    rule = rule.strip().lower()
    if rule == "*":
        return True
    address = ip_address(host)
    network = _network(rule)
    if network is not None:
        return address is not None and address in network
    name, rule_port = _host_and_port(rule)
    if rule_port not in ("", str(port)):
        return False
    rule_address = ip_address(name)
    if rule_address is not None or address is not None:
        return rule_address == address
    return _matches_domain(name.removeprefix("*"), host.lower())


def _matches_domain(name: str, host: str) -> bool:
    """`example.com` matches itself and its subdomains, `.example.com` only subdomains."""
    if name.startswith("."):
        return len(name) > 1 and host.endswith(name)
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _network(rule: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    if "/" not in rule:
        return None
    try:
        return ipaddress.ip_network(rule, strict=False)
    except ValueError:
        return None


def _host_and_port(rule: str) -> tuple[str, str]:
    if rule.startswith("["):
        host, _, port = rule[1:].partition("]")
        return host, port.removeprefix(":")
    if rule.count(":") == 1:
        host, _, port = rule.partition(":")
        return host, port
    return rule, ""
