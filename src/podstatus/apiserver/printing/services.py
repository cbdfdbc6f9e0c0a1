"""Table rows of Services.

Upstream: printService, pkg/printers/internalversion/printers.go v1.36.4.
"""

from typing import Any

from podstatus.apiserver.printing.columns import AGE, NAME, Column, Printer
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.scalars.human_duration import format_age
from podstatus.kube.scalars.time import Time
from podstatus.kube.unstructured import (
    nested_dict,
    nested_list,
    nested_str,
    nested_time,
    nested_value,
)

_NONE = "<none>"


def _cells(service: Document, now: Time) -> list[Any]:
    addresses = nested_list(service, "spec", "clusterIPs")
    selector = nested_dict(service, "spec", "selector")
    return [
        nested_str(service, "metadata", "name"),
        nested_str(service, "spec", "type"),
        addresses[0] if addresses else _NONE,
        _external_address(service),
        ",".join(_port(port) for port in nested_list(service, "spec", "ports")) or _NONE,
        format_age(nested_time(service, "metadata", "creationTimestamp"), now),
        ",".join(f"{key}={selector[key]}" for key in sorted(selector)) or _NONE,
    ]


def _external_address(service: Document) -> str:
    addresses = [str(address) for address in nested_list(service, "spec", "externalIPs")]
    match nested_str(service, "spec", "type"):
        case "ClusterIP" | "NodePort":
            return ",".join(addresses) or _NONE
        case "LoadBalancer":
            ingress = nested_list(service, "status", "loadBalancer", "ingress")
            balancers = {nested_str(it, "ip") or nested_str(it, "hostname") for it in ingress}
            return ",".join([*sorted(balancers - {""}), *addresses]) or "<pending>"
        case "ExternalName":
            return nested_str(service, "spec", "externalName")
    return "<unknown>"


def _port(port: Document) -> str:
    number, protocol = nested_value(port, "port"), nested_str(port, "protocol")
    node_port = nested_value(port, "nodePort")
    return f"{number}:{node_port}/{protocol}" if node_port else f"{number}/{protocol}"


SERVICE_PRINTER = Printer(
    (
        NAME,
        Column(name="Type", description="ClusterIP, ExternalName, LoadBalancer or NodePort."),
        Column(name="Cluster-IP", description="The address of the Service in the cluster."),
        Column(name="External-IP", description="The addresses outside of the cluster."),
        Column(name="Port(s)", description="The ports of the Service."),
        AGE,
        Column(name="Selector", priority=1, description="The labels of the pods that it selects."),
    ),
    _cells,
)
