"""Which texts are IP addresses, and when several of them are one pod's or host's.

Upstream: apimachinery v0.36.4, pkg/util/validation/ip.go, with strict validation as v1.36 has it.
"""

import re
from collections.abc import Collection, Sequence
from ipaddress import IPv6Address, ip_address, ip_interface

from podstatus.kube.validation.field_errors import FieldError, invalid_value

_DIGITS = re.compile("[0-9]{1,4}")
_LEADING_ZEROS = re.compile(r"(?<![0-9a-fA-F:])0+(?=[0-9]+(?:\.|$))")


def validate_addresses(
    field: str, addresses: Sequence[str], old: Collection[str]
) -> list[FieldError]:
    """What is wrong with a list of addresses; those there were before may stay."""
    found = []
    for index, address in enumerate(addresses):
        if address not in old:
            found += validate_address(f"{field}[{index}]", address)
    if len(addresses) > 1:
        found += _validate_families(field, addresses)
    return found


def _validate_families(field: str, addresses: Sequence[str]) -> list[FieldError]:
    families = [family(address) for address in addresses]
    found = []
    if 0 in families:
        bad = families.index(0)
        why = f"failed to check for dual stack with error:invalid IP[{bad}]: {addresses[bad]}"
        found.append(FieldError("InternalError", field, f"Internal error: {why}"))
    if len(addresses) > 2 or set(families) != {4, 6}:
        listed = [{"IP": address} for address in addresses]
        why = "may specify no more than one IP for each IP family"
        found.append(invalid_value(field, listed, why))
    return found


def validate_address(field: str, address: str) -> list[FieldError]:
    """What is wrong with an address."""
    if not family(address):
        why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        return [invalid_value(field, address, why)]
    try:
        parsed = ip_address(address)
    except ValueError:
        return [invalid_value(field, address, "must not have leading 0s")]
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped:
        return [invalid_value(field, address, "must not be an IPv4-mapped IPv6 address")]
    return []


def validate_networks(field: str, networks: Sequence[str]) -> list[FieldError]:
    """What is wrong with a list of networks: at most one of each family."""
    found = []
    for index, network in enumerate(networks):
        found += _validate_network(f"{field}[{index}]", network)
    families = {family(network.partition("/")[0]) for network in networks}
    if len(networks) > 1 and (len(networks) > 2 or families != {4, 6}):
        why = "may specify no more than one CIDR for each IP family"
        found.append(invalid_value(field, list(networks), why))
    return found


def _validate_network(field: str, network: str) -> list[FieldError]:
    address, _, length = network.partition("/")
    bits = 32 if "." in address else 128
    if not family(address) or not _DIGITS.fullmatch(length) or int(length) > bits:
        why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        return [invalid_value(field, network, why)]
    try:
        parsed = ip_interface(network)
    except ValueError:
        parsed = None
    if parsed is None or str(int(length)) != length:
        why = "must not have leading 0s in IP or prefix length"
    elif isinstance(parsed.ip, IPv6Address) and parsed.ip.ipv4_mapped:
        why = "must not have an IPv4-mapped IPv6 address"
    elif parsed.ip != parsed.network.network_address:
        why = "must not have bits set beyond the prefix length"
    else:
        return []
    return [invalid_value(field, network, why)]


def family(address: str) -> int:
    """4 or 6; 0 for what is no address. A zone makes it none, zeros in front do not."""
    try:
        parsed = ip_address(_LEADING_ZEROS.sub("", address))
    except ValueError:
        return 0
    if isinstance(parsed, IPv6Address):
        if parsed.scope_id is not None:
            return 0
        return 4 if parsed.ipv4_mapped else 6
    return 4
