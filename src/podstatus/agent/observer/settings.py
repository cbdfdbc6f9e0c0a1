"""The settings of `podstatus observe`: those of `run` that apply to an observer."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from podstatus.agent.settings.default_root_dir import default_root_dir
from podstatus.agent.settings.load import LoadedSettings, SettingsError, load_settings
from podstatus.agent.settings.model import BY_NAME, SETTINGS
from podstatus.agent.settings.paths import PATH
from podstatus.agent.settings.schema.scalars import BOOL, NODE_NAME, choice, duration
from podstatus.agent.settings.schema.setting import (
    InvalidValueError,
    RawValue,
    Setting,
    abbreviate,
    declared_settings,
    error_line,
    parse_value,
    setting,
)
from podstatus.client.leaderelection.decide.election_lease import timing_errors

_LEASE_DURATION = duration(
    1, allowed="a duration in whole seconds, such as 15s", whole_seconds=True
)
_PERIOD = duration(0.1, allowed="a duration of at least 100ms, such as 2s")


@dataclass(frozen=True, kw_only=True, repr=False)
class ObserverSettings:
    """The settings that only an observer has. Durations are in seconds."""

    node_usage: str = setting(
        choice(("metrics", "summary", "none")),
        "Where to read the usage of nodes. metrics: CPU and memory from metrics.k8s.io; summary: "
        "also disk, inodes and processes, from /stats/summary of each node, which needs "
        "permission for nodes/proxy; none: do not read it.",
        default="metrics",
        group="Nodes",
    )
    leader_elect: bool = setting(
        BOOL,
        "Send alerts only while this observer holds a Lease, so that of several observers of a "
        "cluster one notifies.",
        default="false",
        group="Leader election",
    )
    leader_elect_lease_duration: float = setting(
        _LEASE_DURATION,
        "How long observers wait after the last renewal of the Lease before one of them acquires "
        "it.",
        default="15s",
    )
    leader_elect_renew_deadline: float = setting(
        _PERIOD,
        "How long the leader sends alerts after its last renewal of the Lease; less than "
        "--leader-elect-lease-duration.",
        default="10s",
    )
    leader_elect_retry_period: float = setting(
        _PERIOD, "Time between two attempts to acquire or renew the Lease.", default="2s"
    )
    leader_elect_resource_name: str = setting(
        NODE_NAME, "Name of the Lease.", default="podstatus-observer"
    )
    leader_elect_resource_namespace: str = setting(
        NODE_NAME, "Namespace of the Lease.", default="podstatus"
    )


class LoadedObserveSettings(LoadedSettings, frozen=True, kw_only=True):
    """The settings of an observer, and warnings to print."""

    observer: ObserverSettings


_NO_RUNTIME = "simulated"
"""AgentSettings needs a runtime; an observer never uses it."""
_NO_CLUSTER = (
    "--kubeconfig: required; pass the kubeconfig of the cluster to observe (for an agent with the "
    "embedded API server: the file kubeconfig in its root directory)"
)


def _override(
    name: str, help: str, *, default: str | None = None, default_help: str = ""
) -> Setting:
    return structs.replace(BY_NAME[name], help=help, default=default, default_help=default_help)


AGENT_SETTINGS_OF_OBSERVERS: tuple[Setting, ...] = (
    _override(
        "root_dir",
        "Directory where the observer stores its history, serving certificate and token.",
        default_help="$XDG_DATA_HOME/podstatus-observer, or ~/.local/share/podstatus-observer",
    ),
    _override(
        "kubeconfig", "Path to the kubeconfig of the cluster to observe.", default_help="none"
    ),
    _override(
        "in_cluster",
        "Observe the cluster in which the observer runs as a pod, using the service account of "
        "that pod.",
        default_help="true if the observer runs in a pod and --kubeconfig is not set",
    ),
    _override("address", "IP address that the HTTPS server listens on.", default="127.0.0.1"),
    _override("port", "Port of the HTTPS server; 0 picks a free port.", default="10270"),
    BY_NAME["tls_cert_file"],
    BY_NAME["tls_private_key_file"],
    _override("client_ca_file", BY_NAME["client_ca_file"].help, default_help="none"),
    _override(
        "authentication_token_webhook",
        "Authenticate bearer tokens with the TokenReview API of the API server; the observer needs "
        "permission to create TokenReviews.",
        default="false",
    ),
    BY_NAME["authentication_token_webhook_cache_ttl"],
    _override("authorization_mode", BY_NAME["authorization_mode"].help, default="Webhook"),
    BY_NAME["authorization_webhook_cache_authorized_ttl"],
    BY_NAME["authorization_webhook_cache_unauthorized_ttl"],
    _override(
        "history",
        "Record pod status transitions in the file history.db in the root directory.",
        default="true",
    ),
    BY_NAME["history_days"],
    BY_NAME["history_size"],
    _override(
        "alerts",
        "Evaluate the default alert rules and the rules from --alert-rules for all observed pods "
        "and nodes.",
        default="true",
    ),
    BY_NAME["alert_rules"],
    BY_NAME["alertmanager_url"],
    BY_NAME["v"],
    BY_NAME["log_format"],
)
OBSERVER_SETTINGS = tuple(declared_settings(ObserverSettings))
OBSERVE_SETTINGS = AGENT_SETTINGS_OF_OBSERVERS + OBSERVER_SETTINGS
_SETTING_NAMES = frozenset(it.name for it in AGENT_SETTINGS_OF_OBSERVERS)


def default_observer_dir(environment: Mapping[str, str]) -> Path:
    """Return the default of `--root-dir`; it differs from that of an agent."""
    return default_root_dir(environment).with_name("podstatus-observer")


def load_observe_settings(
    flags: Mapping[str, str | None],
    environment: Mapping[str, str],
    names: Mapping[str, str],
    *,
    on_terminal: bool = False,
) -> LoadedObserveSettings:
    """Load the settings of an observer. Variables of settings that it does not have are ignored.

    `names`: option -> namespace or node name to validate, empty if not given.
    Raises SettingsError.
    """
    ignored = {it.variable for it in SETTINGS if it.name not in _SETTING_NAMES}
    ignored |= {it.variable for it in OBSERVER_SETTINGS}
    variables = {name: value for name, value in environment.items() if name not in ignored}
    own = {it.name for it in OBSERVER_SETTINGS}
    agent_flags = {name: text for name, text in flags.items() if name not in own}
    values = {**_with_defaults(agent_flags, variables, environment), "runtime": _NO_RUNTIME}
    errors = [*_invalid_names(names), *_missing_kubeconfig(values, variables)]
    observer = _load_observer_settings(flags, environment, errors)
    if errors:
        raise SettingsError(tuple(errors))
    loaded = load_settings(values, variables, on_terminal=on_terminal)
    if loaded.settings.embedded:
        raise SettingsError((_NO_CLUSTER,))
    if observer.leader_elect and not loaded.settings.alerts:
        raise SettingsError(("--leader-elect: has no effect with --no-alerts; remove one of them",))
    return LoadedObserveSettings(loaded.settings, loaded.warnings, observer=observer)


def _load_observer_settings(
    flags: Mapping[str, str | None], environment: Mapping[str, str], errors: list[str]
) -> ObserverSettings:
    """Load the settings that only an observer has, and append their errors."""
    values: dict[str, Any] = {}
    for it in OBSERVER_SETTINGS:
        raw = _raw_value(it, flags, environment)
        try:
            values[it.name] = parse_value(it, raw)
        except InvalidValueError as error:
            errors.append(error_line(it, raw, error))
            values[it.name] = parse_value(it, RawValue(it.option, it.default))
    settings = ObserverSettings(**values)
    errors += (
        f"--leader-elect: {error}"
        for error in timing_errors(
            lease_duration=settings.leader_elect_lease_duration,
            renew_deadline=settings.leader_elect_renew_deadline,
            retry_period=settings.leader_elect_retry_period,
        )
    )
    return settings


def _raw_value(
    it: Setting, flags: Mapping[str, str | None], environment: Mapping[str, str]
) -> RawValue:
    if (text := flags.get(it.name)) is not None:
        return RawValue(it.option, text)
    if text := environment.get(it.variable):
        return RawValue(it.variable, text)
    return RawValue(it.option, it.default)


def _invalid_names(names: Mapping[str, str]) -> Iterator[str]:
    for option, name in names.items():
        try:
            NODE_NAME.parse_text(name or "any")
        except InvalidValueError:
            yield f"{option}: {abbreviate(name)} is not a valid name"


def _missing_kubeconfig(
    flags: Mapping[str, str | None], variables: Mapping[str, str]
) -> Iterator[str]:
    path = flags.get("kubeconfig") or variables.get(BY_NAME["kubeconfig"].variable)
    with suppress(InvalidValueError):  # `load_settings` reports it.
        if path and not PATH.parse_text(path).is_file():
            yield f"--kubeconfig: no kubeconfig at {path}; pass an existing file"


def _with_defaults(
    flags: Mapping[str, str | None], variables: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str | None]:
    """The given flags, plus the observer's defaults of settings given neither way."""
    own = (it for it in AGENT_SETTINGS_OF_OBSERVERS if it is not BY_NAME[it.name])
    defaults = {it.name: it.default for it in own if it.default is not None}
    defaults["root_dir"] = str(default_observer_dir(environment))
    unset = {
        name: text for name, text in defaults.items() if not variables.get(BY_NAME[name].variable)
    }
    return {**unset, **{name: text for name, text in flags.items() if text is not None}}
