"""Table rows of NodeMetrics and PodMetrics.

Upstream: metrics-server, pkg/api/table.go.
"""

from collections.abc import Iterable
from typing import Any

from podstatus.apiserver.printing.columns import NAME, Column, Printer
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time
from podstatus.kube.unstructured import nested_dict, nested_list, nested_str

_COLUMNS = (
    NAME,
    Column(name="cpu", format="quantity", description="The CPU usage, in cores."),
    Column(name="memory", format="quantity", description="The memory working set."),
    Column(name="Window", format="duration", description="The interval of the measurement."),
)


def _node(document: Document, _now: Time) -> list[Any]:
    return _cells(document, [nested_dict(document, "usage")])


def _pod(document: Document, _now: Time) -> list[Any]:
    containers = nested_list(document, "containers")
    return _cells(document, [nested_dict(container, "usage") for container in containers])


def _cells(document: Document, usages: Iterable[Document]) -> list[Any]:
    cpu = memory = Quantity("0")
    for usage in usages:
        cpu = cpu.plus(Quantity.parse(usage["cpu"]))
        memory = memory.plus(Quantity.parse(usage["memory"]))
    name, window = nested_str(document, "metadata", "name"), nested_str(document, "window")
    return [name, cpu.canonical, memory.canonical, window]


NODE_METRICS_PRINTER = Printer(_COLUMNS, _node)
POD_METRICS_PRINTER = Printer(_COLUMNS, _pod)
