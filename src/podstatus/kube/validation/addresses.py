"""Validation of IP addresses and networks, and of lists of them.

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
    """Return the errors of a list of addresses; those in the old object are not checked."""
    errors = []
    for index, address in enumerate(addresses):
        if address not in old:
            errors += validate_address(f"{field}[{index}]", address)
    if len(addresses) > 1:
        errors += _validate_families(field, addresses)
    return errors


def _validate_families(field: str, addresses: Sequence[str]) -> list[FieldError]:
    families = [family(address) for address in addresses]
    errors = []
    if 0 in families:
        bad = families.index(0)
        detail = f"failed to check for dual stack with error:invalid IP[{bad}]: {addresses[bad]}"
        errors.append(FieldError("InternalError", field, f"Internal error: {detail}"))
    if len(addresses) > 2 or set(families) != {4, 6}:
        listed = [{"IP": address} for address in addresses]
        detail = "may specify no more than one IP for each IP family"
        errors.append(invalid_value(field, listed, detail))
    return errors


def validate_address(field: str, address: str) -> list[FieldError]:
    if not family(address):
        detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        return [invalid_value(field, address, detail)]
    try:
        parsed = ip_address(address)
    except ValueError:
        return [invalid_value(field, address, "must not have leading 0s")]
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped:
        return [invalid_value(field, address, "must not be an IPv4-mapped IPv6 address")]
    return []


def validate_networks(field: str, networks: Sequence[str]) -> list[FieldError]:
    """Return the errors of a list of networks: at most one of each IP family."""
    errors = []
    for index, network in enumerate(networks):
        errors += _validate_network(f"{field}[{index}]", network)
    families = {family(network.partition("/")[0]) for network in networks}
    if len(networks) > 1 and (len(networks) > 2 or families != {4, 6}):
        detail = "may specify no more than one CIDR for each IP family"
        errors.append(invalid_value(field, list(networks), detail))
    return errors


def _validate_network(field: str, network: str) -> list[FieldError]:
    address, _, length = network.partition("/")
    bits = 32 if "." in address else 128
    if not family(address) or not _DIGITS.fullmatch(length) or int(length) > bits:
        detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        return [invalid_value(field, network, detail)]
    try:
        parsed = ip_interface(network)
    except ValueError:
        parsed = None
    if parsed is None or str(int(length)) != length:
        detail = "must not have leading 0s in IP or prefix length"
    elif isinstance(parsed.ip, IPv6Address) and parsed.ip.ipv4_mapped:
        detail = "must not have an IPv4-mapped IPv6 address"
    elif parsed.ip != parsed.network.network_address:
        detail = "must not have bits set beyond the prefix length"
    else:
        return []
    return [invalid_value(field, network, detail)]


def family(address: str) -> int:
    """Return 4 or 6, or 0 for an invalid address. A zone is invalid, leading zeros are not."""
    try:
        parsed = ip_address(_LEADING_ZEROS.sub("", address))
    except ValueError:
        return 0
    if isinstance(parsed, IPv6Address):
        if parsed.scope_id is not None:
            return 0
        return 4 if parsed.ipv4_mapped else 6
    return 4
