"""The load of a node as text: amounts, percentages of what is allocatable, averages."""

from collections.abc import Iterator, Sequence

from podstatus.cli.render.described_fields import columns
from podstatus.node.decide.measured_usage import CPU, DISK, MEMORY, PODS, WINDOWS
from podstatus.observe.ports import NodeSummary
from podstatus.observe.summary.health import format_duration
from podstatus.observe.summary.node_load import LoadAverage, NodeLoad, ResourceLoad

UNKNOWN = "<unknown>"
_NOTHING = "-"
_SHORT = (CPU, MEMORY, DISK)
"""Resources of tables and lines that have no space for all."""
_BYTES = (MEMORY, DISK)
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi")
_STEP = 1024
_MAX_MEBIBYTES = 10_000
_LATE_SECONDS = 60.0
"""Age of a measurement from which it is mentioned."""
WIDE_HEADINGS = ("CPU", "MEMORY", "DISK")


def wide_cells(load: NodeLoad | None) -> tuple[str, ...]:
    """Return the cells below WIDE_HEADINGS: used amounts with their percentages."""
    if load is None:
        return (UNKNOWN,) * len(WIDE_HEADINGS)
    loads = load.by_resource()
    return tuple(_used(name, loads[name]) for name in _SHORT)


def load_lines(load: NodeLoad) -> Iterator[str]:
    """Yield the section of a description: a row for each resource."""
    loads = {name: it for name, it in load.by_resource().items() if it != ResourceLoad()}
    yield "Load:"
    if load.age_seconds is None:
        yield "  (Usage has not been measured yet.)"
    elif load.age_seconds >= _LATE_SECONDS:
        yield f"  (Usage was last measured {format_duration(load.age_seconds)} ago.)"
    if any(_is_partial(average, load) for load in loads.values() for average in WINDOWS):
        yield "  (An average with a time covers only this part of its window.)"
    if loads:
        headings = ("Resource", "Used", *WINDOWS, "Requested", "Allocatable")
        yield from columns([headings, *(_row(name, it) for name, it in loads.items())])


def nodes_line(nodes: Sequence[NodeSummary]) -> str:
    """Return the load of a node in one line; of several, which uses most of each resource."""
    if len(nodes) != 1:
        ready = sum(node.ready for node in nodes)
        most = "".join(f", {resource} {_most(resource, nodes)}" for resource in _SHORT)
        return f"{len(nodes)} nodes, {ready} ready; most used:{most.removeprefix(',')}"
    (node,) = nodes
    loads = node.load.by_resource()
    parts = [f"cpu {_known_percent(loads[CPU])}{_short_averages(loads[CPU])}"]
    parts += [f"{resource} {_known_percent(loads[resource])}" for resource in (MEMORY, DISK)]
    state = "" if node.ready else " is not ready"
    allocatable = loads[PODS].allocatable
    of = "" if allocatable is None else f" of {allocatable:.0f}"
    return f"node {node.name}{state}: {', '.join(parts)}, pods {node.pods}{of}"


def _most(resource: str, nodes: Sequence[NodeSummary]) -> str:
    fractions = {node.name: node.load.by_resource()[resource].used_fraction for node in nodes}
    known = {name: fraction for name, fraction in fractions.items() if fraction is not None}
    if not known:
        return UNKNOWN
    name = max(known, key=lambda name: known[name])
    return f"{name} {_percent(known[name])}"


def _known_percent(load: ResourceLoad) -> str:
    return _percent(load.used_fraction) or UNKNOWN


def _short_averages(load: ResourceLoad) -> str:
    averages = [
        f"{window} {_percent(average.used_fraction)}"
        for window in WINDOWS
        if (average := load.complete_average(window)) and average.used_fraction is not None
    ]
    return f" ({', '.join(averages)})" if averages else ""


def _row(name: str, load: ResourceLoad) -> tuple[str, ...]:
    return (
        name,
        _used(name, load),
        *(_average(name, load, window) for window in WINDOWS),
        _share(name, load.requested, load.requested_fraction) or _NOTHING,
        _NOTHING if load.allocatable is None else _amount(name, load.allocatable),
    )


def _used(name: str, load: ResourceLoad) -> str:
    return _share(name, load.used, load.used_fraction) or UNKNOWN


def _share(name: str, amount: float | None, fraction: float | None) -> str:
    if amount is None:
        return ""
    percent = "" if fraction is None else f" ({_percent(fraction)})"
    return f"{_amount(name, amount)}{percent}"


def _average(name: str, load: ResourceLoad, window: str) -> str:
    average = load.averages.get(window)
    if average is None:
        return _NOTHING
    known = average.used_fraction is not None
    text = _percent(average.used_fraction) if known else _amount(name, average.used)
    return f"{text} ({_duration(average)})" if _is_partial(window, load) else text


def _is_partial(window: str, load: ResourceLoad) -> bool:
    return window in load.averages and load.complete_average(window) is None


def _duration(average: LoadAverage) -> str:
    return format_duration(average.covered_seconds)


def _percent(fraction: float | None) -> str:
    return "" if fraction is None else f"{fraction * 100:.0f}%"


def _amount(name: str, amount: float) -> str:
    """As `kubectl top`: millicores and mebibytes; more bytes in larger units."""
    if name == CPU:
        return f"{amount * 1000:.0f}m"
    if name not in _BYTES:
        return f"{amount:.0f}"
    if amount < _MAX_MEBIBYTES * _STEP**2:
        return f"{amount / _STEP**2:.0f}Mi"
    unit = 0
    while amount >= _STEP and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{amount:.1f}{_UNITS[unit]}"
