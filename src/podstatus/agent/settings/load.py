"""Load the settings: flags override variables, variables the file, the file the defaults.

SettingsError     settings are invalid; lists all errors, each with its origin
"""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from podstatus.agent.settings.default_root_dir import default_root_dir
from podstatus.agent.settings.eviction import eviction_thresholds, with_default_eviction_hard
from podstatus.agent.settings.model import BY_NAME, SETTINGS, AgentSettings
from podstatus.agent.settings.schema.parse_kubelet_config import ConfigFile, parse_config
from podstatus.agent.settings.schema.scalars import NODE_NAME, PROCESS, RUNTIMES
from podstatus.agent.settings.schema.setting import (
    InvalidValueError,
    RawValue,
    error_line,
    parse_value,
)
from podstatus.client.auth.files import UnreadableError, read_file
from podstatus.client.auth.in_cluster_config import is_in_cluster
from podstatus.kube.objects.node import Taint

_PREFIX = "PODSTATUS_"
PROCESS_TAINT = Taint(key="podstatus.dev/process", effect="NoExecute")
RESTART_REASON_VARIABLE = "PODSTATUS_RESTARTED"
"""Set by the supervisor for the restarted agent: how the previous one exited. Not a setting."""


class SettingsError(Exception):
    """The settings are invalid; `errors` has one line per error."""

    def __init__(self, errors: tuple[str, ...]) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors


class LoadedSettings(msgspec.Struct, frozen=True):
    """The settings, and warnings to print."""

    settings: AgentSettings
    warnings: tuple[str, ...] = ()


def load_settings(
    flags: Mapping[str, str | None], environment: Mapping[str, str], *, on_terminal: bool = False
) -> LoadedSettings:
    """Load and validate the settings. `flags`: setting name -> text of the flag, None if not given.

    `on_terminal`: standard error is a terminal, so the default verbosity is 0.
    Raises SettingsError.
    """
    loader = _Loader(environment, on_terminal=on_terminal)
    by_flag = _values_from_flags(flags)
    by_variable = dict(_values_from_variables(environment))
    file = loader.file(by_flag.get("config") or by_variable.get("config"))
    given = loader.parse(by_flag, by_variable, file.values)
    settings = loader.settings(given)
    errors = (*loader.errors, *_conflicts(settings, given, environment))
    if errors:
        raise SettingsError(errors)
    warnings = (*file.warnings, *_warnings(environment), *_gate_warnings(settings))
    return LoadedSettings(settings, warnings)


class _Loader:
    """Loads values and collects the errors."""

    def __init__(self, environment: Mapping[str, str], *, on_terminal: bool) -> None:
        self._environment = environment
        self._on_terminal = on_terminal
        self.errors: list[str] = []

    def file(self, raw: RawValue | None) -> ConfigFile:
        """Read and parse the configuration file; empty if none is given or on an error."""
        if raw is None or not raw.value:
            return ConfigFile({})
        try:
            path = Path(raw.value).expanduser()
        except RuntimeError:  # No home directory; `parse` reports it.
            return ConfigFile({})
        try:
            text = read_file(path, pipes=True).decode()
        except (UnreadableError, UnicodeDecodeError) as error:
            reason = error if isinstance(error, UnreadableError) else "not UTF-8 text"
            self.errors.append(f"{raw.origin}: cannot read {path}: {reason}")
            return ConfigFile({})
        file = parse_config(text, str(path))
        self.errors += file.errors
        return file

    def parse(self, *sources: Mapping[str, RawValue]) -> dict[str, Any]:
        """The valid values by setting name; the first source that has one wins."""
        given: dict[str, Any] = {}
        for setting in SETTINGS:
            for raw in (source[setting.name] for source in sources if setting.name in source):
                try:
                    value = parse_value(setting, raw)
                except* InvalidValueError as errors:
                    self.errors += (error_line(setting, raw, error) for error in _flatten(errors))
                else:
                    given.setdefault(setting.name, value)
        return given

    def settings(self, given: Mapping[str, Any]) -> AgentSettings:
        """The given values, with defaults for the others."""
        settings = AgentSettings(**{**_fixed_defaults(), **given})
        in_cluster = settings.kubeconfig is None and is_in_cluster(self._environment)
        settings = replace(settings, in_cluster=given.get("in_cluster", in_cluster))
        settings = replace(self._with_computed_defaults(settings), **given)
        settings = with_default_eviction_hard(settings, given.get("eviction_hard"))
        # As a default, 0 picks a free port.
        return replace(settings, healthz_port=None) if given.get("healthz_port") == 0 else settings

    def _with_computed_defaults(self, settings: AgentSettings) -> AgentSettings:
        """Set what depends on other settings or on the machine."""
        is_external, any_port = not settings.embedded, settings.port == 0
        needs_taint = is_external and settings.runtime == PROCESS
        return replace(
            settings,
            root_dir=settings.root_dir or default_root_dir(self._environment).absolute(),
            hostname_override=settings.hostname_override or self._host_name(),
            # Keeps DaemonSets of an external cluster from running as processes of this machine.
            register_with_taints=(PROCESS_TAINT,) if needs_taint else (),
            apiserver_port=0 if any_port else settings.apiserver_port,
            # With the embedded API server, its CA authenticates all clients; no reviews are needed.
            authentication_token_webhook=is_external,
            authorization_mode="Webhook" if is_external else "AlwaysAllow",
            healthz_port=0 if any_port else settings.healthz_port,
            shutdown_grace_period_critical_pods=settings.shutdown_grace_period // 3,
            v=0 if self._on_terminal else settings.v,
        )

    def _host_name(self) -> str:
        try:
            return NODE_NAME.parse_text(platform.node())
        except InvalidValueError as error:
            self.errors.append(f"hostname: {error}; pass --hostname-override")
            return ""


def _fixed_defaults() -> dict[str, Any]:
    return {
        it.name: None if it.default is None else it.value_type.parse_text(it.default)
        for it in SETTINGS
    }


def _conflicts(
    settings: AgentSettings, given: Mapping[str, Any], environment: Mapping[str, str]
) -> Iterator[str]:
    """The errors of settings that do not fit each other or the machine."""
    yield from _cluster_conflicts(settings, environment)
    if not settings.embedded and "runtime" not in given:
        yield _missing_runtime(settings)
    yield from _port_conflicts(settings)
    try:
        eviction_thresholds(settings)
    except ValueError as error:
        yield str(error)
    total = settings.shutdown_grace_period
    critical = settings.shutdown_grace_period_critical_pods
    if critical > total:
        yield (
            f"--shutdown-grace-period-critical-pods: {critical:g} s exceeds the {total:g} s of "
            "--shutdown-grace-period, of which it is a part"
        )


def _cluster_conflicts(settings: AgentSettings, environment: Mapping[str, str]) -> Iterator[str]:
    kubeconfig = settings.kubeconfig
    if kubeconfig is not None and not kubeconfig.is_file():
        yield (
            f"--kubeconfig: no kubeconfig at {kubeconfig}; pass an existing file, or leave it "
            "out to use the embedded API server"
        )
    if kubeconfig is not None and settings.in_cluster:
        yield "--in-cluster: cannot be combined with --kubeconfig"
    if settings.in_cluster and not is_in_cluster(environment):
        yield (
            "--in-cluster: not running in a pod, KUBERNETES_SERVICE_HOST and "
            "KUBERNETES_SERVICE_PORT are not set; pass --kubeconfig"
        )


def _missing_runtime(settings: AgentSettings) -> str:
    runtimes = f"pass {', '.join(RUNTIMES)} or module:Class"
    if settings.kubeconfig is not None:
        return f"--runtime: required with --kubeconfig; {runtimes}"
    return (
        f"--runtime: required in a pod of a cluster; {runtimes}, or --no-in-cluster to use the "
        "embedded API server"
    )


def _port_conflicts(settings: AgentSettings) -> Iterator[str]:
    option_by_port: dict[int, str] = {}
    for name in ("port", "healthz_port", "apiserver_port"):
        port, option = getattr(settings, name), BY_NAME[name].option
        if port and port in option_by_port:
            yield f"{option}: {port} is already used by {option_by_port[port]}"
        option_by_port.setdefault(port, option)


def _flatten(group: BaseExceptionGroup[InvalidValueError]) -> Iterator[InvalidValueError]:
    for error in group.exceptions:
        if isinstance(error, InvalidValueError):
            yield error
        else:
            yield from _flatten(error)


def _values_from_flags(flags: Mapping[str, str | None]) -> dict[str, RawValue]:
    return {
        name: RawValue(BY_NAME[name].option, value)
        for name, value in flags.items()
        if value is not None
    }


def _values_from_variables(environment: Mapping[str, str]) -> Iterator[tuple[str, RawValue]]:
    for setting in SETTINGS:
        value = environment.get(setting.variable)
        if value is None or (not value and not setting.value_type.allow_empty):
            continue
        if not _is_service_variable(setting.variable, value):
            yield setting.name, RawValue(setting.variable, value)


def _gate_warnings(settings: AgentSettings) -> Iterator[str]:
    """Feature gates of Kubernetes that change nothing here, in one line."""
    if names := settings.feature_gates.without_effect:
        yield f"feature gates without effect in podstatus: {', '.join(names)}"


def _warnings(environment: Mapping[str, str]) -> Iterator[str]:
    """Environment variables with our prefix that are not settings."""
    variables = {setting.variable for setting in SETTINGS} | {RESTART_REASON_VARIABLE}
    for name, value in sorted(environment.items()):
        if not name.startswith(_PREFIX) or name in variables or _is_service_variable(name, value):
            continue
        close = get_close_matches(name, variables, n=1)
        guess = f"; did you mean {close[0]}?" if close else ""
        yield f"{name}: ignored, no such setting{guess}"


def _is_service_variable(name: str, value: str) -> bool:
    """True if the kubelet of a cluster set it for a Service named podstatus."""
    rest = name.removeprefix(_PREFIX)
    return rest.startswith(("SERVICE_", "PORT_")) or ("://" in value and rest == "PORT")
