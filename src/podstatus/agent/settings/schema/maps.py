"""Value types of map and list settings: labels, quantities, headers, taints, shutdown periods, …

Upstream: the flags of cmd/kubelet/app/options; ParseTaints, pkg/util/taints; thresholds,
pkg/kubelet/eviction/helpers.go; v1.36.4. ShutdownGracePeriodByPodPriority,
config/v1beta1/types.go, kubelet v0.36.4.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, TypeVar

from podstatus.agent.settings.schema.setting import InvalidValueError, ValueT, ValueType
from podstatus.kube.features import FeatureGates
from podstatus.kube.known_feature_gates import KNOWN_GATES, LOCKED_GATES
from podstatus.kube.objects.node import Taint
from podstatus.kube.scalars.duration import DurationError, parse_duration
from podstatus.kube.scalars.quantity import Quantity, QuantityError
from podstatus.kube.validation.names import label_value, qualified_name
from podstatus.workers.shutdown.plan import ShutdownPeriod

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SIGNALS = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "pid.available",
)
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)%", re.ASCII)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Labels of kubernetes.io and k8s.io that a kubelet may set on its own Node.
# Upstream: IsKubeletLabel, staging/src/k8s.io/kubelet/pkg/apis/well_known_labels.go.
_ALLOWED_LABELS = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    }
)
_ALLOWED_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_MORE = ",…"
"""In the metavar of a map, after its first pair."""
_PERIOD = re.compile(r"(-?\d{1,10})=(\d{1,9})", re.ASCII)
_PERIOD_FIELDS = {"priority", "shutdownGracePeriodSeconds"}
_PERIODS_FORMAT = "a list of maps with the integers priority and shutdownGracePeriodSeconds"
_PRIORITY_LIMIT = 2**31

ParsedT = TypeVar("ParsedT")


def _items(text: str) -> list[tuple[str]]:
    return [(item.strip(),) for item in text.split(",") if item.strip()]


def _parse_all(parse: Callable[..., ParsedT], items: Iterable[tuple[Any, ...]]) -> list[ParsedT]:
    """Parse all items. Raises an ExceptionGroup of the errors of all invalid items."""
    values, errors = [], []
    for item in items:
        try:
            values.append(parse(*item))
        except InvalidValueError as error:
            errors.append(error)
    if errors:
        raise ExceptionGroup("invalid values", errors)
    return values


def _map_type(
    metavar: str,
    separator: str,
    parse: Callable[[str, Any], ParsedT],
    combine: Callable[[list[ParsedT]], ValueT],
    *,
    example: str,
) -> ValueType[ValueT]:
    """A map, written `a=b,c=d` in flags and variables."""
    form = f"of the form {metavar.removesuffix(_MORE)}, such as {example}"

    def read_item(item: str) -> ParsedT:
        key, has_separator, value = item.partition(separator)
        if not has_separator:
            raise InvalidValueError(item, form)
        return parse(key.strip(), value.strip())

    def read_document(value: Any) -> ValueT:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise InvalidValueError(value, f"a map: {example}{_MORE}")
        return combine(_parse_all(parse, value.items()))

    return ValueType(
        metavar=metavar,
        parse_text=lambda text: combine(_parse_all(read_item, _items(text))),
        parse_document=read_document,
        allow_empty=True,
    )


def _list_type(
    metavar: str,
    parse_text: Callable[[str], ParsedT],
    parse_map: Callable[[Any], ParsedT],
    combine: Callable[[list[ParsedT]], ValueT],
    *,
    allowed: str,
) -> ValueType[ValueT]:
    """A list, written `a,b` in flags and variables; a list of maps in configuration files."""

    def read_document(value: Any) -> ValueT:
        if not isinstance(value, list):
            raise InvalidValueError(value, allowed)
        return combine(_parse_all(parse_map, ((item,) for item in value)))

    return ValueType(
        metavar=metavar,
        parse_text=lambda text: combine(_parse_all(parse_text, _items(text))),
        parse_document=read_document,
        allow_empty=True,
    )


def _check_unique(keys: Iterable[object], what: str) -> None:
    seen = set()
    for key in keys:
        if key in seen:
            raise InvalidValueError(key, f"unique; give each {what} once")
        seen.add(key)


def _to_map(pairs: list[tuple[str, ParsedT]]) -> dict[str, ParsedT]:
    return dict(pairs)


def _parse_label(key: str, value: Any) -> tuple[str, str]:
    if not isinstance(value, str):
        raise InvalidValueError(value, f"a string; the value of the label {key} must be one")
    if errors := [*qualified_name(key), *label_value(value)]:
        raise InvalidValueError(f"{key}={value}", f"a valid label: {'; '.join(errors)}")
    if not _is_allowed_label(key):
        raise InvalidValueError(
            key,
            "a label that a node may set on itself; in kubernetes.io and k8s.io these are "
            f"{', '.join(sorted(_ALLOWED_LABELS))} and labels of {', '.join(_ALLOWED_DOMAINS)}",
        )
    return key, value


def _is_allowed_label(key: str) -> bool:
    domain, slash, _ = key.rpartition("/")
    if not slash or not _is_subdomain(domain, ("kubernetes.io", "k8s.io")):
        return True
    return key in _ALLOWED_LABELS or _is_subdomain(domain, _ALLOWED_DOMAINS)


def _is_subdomain(domain: str, domains: Iterable[str]) -> bool:
    return any(domain == other or domain.endswith(f".{other}") for other in domains)


def _parse_gate(name: str, value: Any) -> tuple[str, bool]:
    if value not in (True, False, "true", "false"):
        raise InvalidValueError(f"{name}={value}", "a feature gate with true or false")
    enabled = value in (True, "true")
    if name not in KNOWN_GATES:
        raise InvalidValueError(name, "a feature gate of Kubernetes v1.36")
    if LOCKED_GATES.get(name, enabled) != enabled:
        locked = f"{name}={str(not enabled).lower()}"
        raise InvalidValueError(f"{name}={str(enabled).lower()}", f"{locked}: the gate is locked")
    return name, enabled


def _parse_threshold(signal: str, value: Any) -> tuple[str, str]:
    _check_signal(signal)
    if not isinstance(value, str) or not _is_threshold(value):
        raise InvalidValueError(value, f"a quantity or percentage such as 100Mi or 10% ({signal})")
    return signal, value


def _is_threshold(text: str) -> bool:
    if percent := _PERCENT.fullmatch(text):
        return float(percent[1]) <= 100
    try:
        return Quantity.parse(text).nanos >= 0
    except QuantityError:
        return False


def _parse_signal_period(signal: str, value: Any) -> tuple[str, str]:
    _check_signal(signal)
    try:
        parse_duration(value if isinstance(value, str) else "")
    except DurationError as error:
        raise InvalidValueError(value, f"a duration such as 1m30s ({signal})") from error
    return signal, value


def _check_signal(signal: str) -> None:
    if signal not in _SIGNALS:
        raise InvalidValueError(signal, f"one of {', '.join(_SIGNALS)}")


def _parse_amount(name: str, value: Any) -> tuple[str, Quantity]:
    invalid = InvalidValueError(
        f"{name}={value}", "a resource with a quantity, such as cpu=2 or memory=4Gi"
    )
    if qualified_name(name):
        raise invalid
    try:
        amount = Quantity.parse(value)
    except QuantityError as error:
        raise invalid from error
    if amount.nanos < 0:
        raise invalid
    return name, amount


def _parse_header(name: str, raw: Any) -> list[tuple[str, str]]:
    values = raw if isinstance(raw, list) else [raw]
    for value in values:
        if not _HEADER.fullmatch(name) or not isinstance(value, str) or not value.isprintable():
            raise InvalidValueError("a header", "a header name and a printable value")
    return [(name, value) for value in values]


def _join_headers(lists: list[list[tuple[str, str]]]) -> tuple[tuple[str, str], ...]:
    return tuple(chain.from_iterable(lists))


def _build_taint(key: object, value: object, effect: object) -> Taint:
    texts = isinstance(key, str) and isinstance(value, str) and isinstance(effect, str)
    if not texts or effect not in _EFFECTS or qualified_name(str(key)) or label_value(str(value)):
        raise InvalidValueError(f"{key}={value}:{effect}", _TAINT_FORMAT)
    return Taint(key=str(key), value=str(value), effect=str(effect))


def _parse_taint(item: str) -> Taint:
    pair, colon, effect = item.rpartition(":")
    if not colon:
        raise InvalidValueError(item, _TAINT_FORMAT)
    key, _, value = pair.partition("=")
    return _build_taint(key, value, effect)


def _parse_taint_map(item: Any) -> Taint:
    if not isinstance(item, Mapping) or set(item) - {"key", "value", "effect"}:
        raise InvalidValueError(item, "a taint with key, value and effect")
    return _build_taint(item.get("key", ""), item.get("value", ""), item.get("effect", ""))


def _join_taints(taints: list[Taint]) -> tuple[Taint, ...]:
    _check_unique((f"{taint.key}:{taint.effect}" for taint in taints), "key and effect")
    return tuple(taints)


def _parse_period(item: str) -> ShutdownPeriod:
    match = _PERIOD.fullmatch(item)
    if match is None:
        raise InvalidValueError(item, "a priority and seconds, such as 0=20")
    return _build_period(int(match[1]), int(match[2]))


def _parse_period_map(item: Any) -> ShutdownPeriod:
    if not isinstance(item, Mapping) or set(item) != _PERIOD_FIELDS:
        raise InvalidValueError(item, _PERIODS_FORMAT)
    priority, seconds = item["priority"], item["shutdownGracePeriodSeconds"]
    # bool is a subclass of int.
    if type(priority) is not int or type(seconds) is not int:
        raise InvalidValueError(item, _PERIODS_FORMAT)
    return _build_period(priority, seconds)


def _build_period(priority: int, seconds: int) -> ShutdownPeriod:
    if not -_PRIORITY_LIMIT <= priority < _PRIORITY_LIMIT:
        raise InvalidValueError(
            priority, f"a priority from {-_PRIORITY_LIMIT} to {_PRIORITY_LIMIT - 1}"
        )
    if seconds < 0:
        raise InvalidValueError(seconds, "a number of seconds of at least 0")
    return ShutdownPeriod(priority=priority, seconds=seconds)


def _sort_periods(periods: list[ShutdownPeriod]) -> tuple[ShutdownPeriod, ...]:
    _check_unique((period.priority for period in periods), "priority")
    return tuple(sorted(periods, key=lambda period: period.priority))


_TAINT_FORMAT = f"a taint key=value:Effect; effects are {', '.join(_EFFECTS)}"

LABELS = _map_type("KEY=VALUE,…", "=", _parse_label, _to_map, example="disk=ssd")
GATES = _map_type(
    "NAME=BOOL,…",
    "=",
    _parse_gate,
    lambda pairs: FeatureGates.from_names(dict(pairs)),
    example="AllBeta=true",
)
THRESHOLDS = _map_type(
    "SIGNAL<AMOUNT,…", "<", _parse_threshold, _to_map, example="memory.available<5%"
)
SIGNAL_PERIODS = _map_type(
    "SIGNAL=DURATION,…",
    "=",
    _parse_signal_period,
    _to_map,
    example="memory.available=1m30s",
)
SIGNAL_AMOUNTS = _map_type(
    "SIGNAL=AMOUNT,…", "=", _parse_threshold, _to_map, example="memory.available=100Mi"
)
AMOUNTS = _map_type("NAME=AMOUNT,…", "=", _parse_amount, _to_map, example="memory=4Gi")
HEADERS = _map_type(
    "NAME:VALUE,…",
    ":",
    _parse_header,
    _join_headers,
    example="Accept:text/yaml",
)
TAINTS = _list_type(
    "KEY=VALUE:EFFECT,…",
    _parse_taint,
    _parse_taint_map,
    _join_taints,
    allowed="a list of taints with key, value and effect",
)
PERIODS = _list_type(
    "PRIORITY=SECONDS,…", _parse_period, _parse_period_map, _sort_periods, allowed=_PERIODS_FORMAT
)
