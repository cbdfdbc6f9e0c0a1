"""Load the settings: flags override variables, variables the file, the file the defaults.

SettingsError     settings are invalid; lists all errors, each with its origin
"""

import platform
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from podstatus.agent.settings.model import AgentSettings
from podstatus.agent.settings.schema.parse_kubelet_config import ConfigFile, parse_config
from podstatus.agent.settings.schema.scalars import BOOL, NODE_NAME, PATH, PATHS, PROCESS, RUNTIMES
from podstatus.agent.settings.schema.setting import (
    InvalidValueError,
    RawValue,
    Setting,
    error_line,
    parse_value,
)
from podstatus.agent.settings.schema.settings_table import BY_NAME, SETTINGS
from podstatus.client.auth.files import UnreadableError, read_file
from podstatus.client.auth.in_cluster_config import is_in_cluster
from podstatus.kube.objects.node import Taint

_PREFIX = "PODSTATUS_"
PROCESS_TAINT = Taint(key="podstatus.dev/process", effect="NoExecute")
ROOT_DIR_VARIABLE = "PODSTATUS_ROOT_DIR"
"""Read by all commands, not only by `run`."""
RESTART_REASON_VARIABLE = "PODSTATUS_RESTARTED"
"""Set by the supervisor for the restarted agent: how the previous one exited. Not a setting."""
_DEFAULT_PORTS = {"port": 10250, "healthz_port": 10248, "apiserver_port": 6443}


class SettingsError(Exception):
    """The settings are invalid; `errors` has one line per error."""

    def __init__(self, errors: tuple[str, ...]) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors


class LoadedSettings(msgspec.Struct, frozen=True):
    """The settings, and warnings to print."""

    settings: AgentSettings
    warnings: tuple[str, ...] = ()


def default_root_dir(environment: Mapping[str, str]) -> Path:
    """Return the default of `--root-dir`."""
    data = environment.get("XDG_DATA_HOME", "")
    # The XDG specification requires relative paths to be ignored.
    base = Path(data) if data.startswith("/") else Path("~/.local/share").expanduser()
    return base / "podstatus"


def load_settings(
    flags: Mapping[str, str | None], environment: Mapping[str, str], *, on_terminal: bool = False
) -> LoadedSettings:
    """Load and validate the settings. `flags`: setting name -> text of the flag, None if not given.

    `on_terminal`: standard error is a terminal, so the default verbosity is 0.
    Raises SettingsError.
    """
    reading = _Loader(environment, on_terminal=on_terminal)
    by_flag = _values_from_flags(flags)
    by_variable = _values_from_variables(environment)
    file = reading.file(by_flag.get("config") or by_variable.get("config"))
    values = {
        setting.name: reading.value(setting, by_flag, by_variable, file.values)
        for setting in SETTINGS
    }
    settings = reading.settings(values)
    if settings is None:
        raise SettingsError(tuple(reading.errors))
    return LoadedSettings(settings, (*file.warnings, *_warnings(environment)))


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
        path = Path(raw.value).expanduser()
        try:
            text = read_file(path, pipes=True).decode()
        except (UnreadableError, UnicodeDecodeError) as error:
            reason = error if isinstance(error, UnreadableError) else "not UTF-8 text"
            self.errors.append(f"{raw.origin}: cannot read {path}: {reason}")
            return ConfigFile({})
        file = parse_config(text, str(path))
        self.errors += file.errors
        return file

    def value(self, setting: Setting, *sources: Mapping[str, RawValue]) -> Any:
        """The value of the first source that has one. Errors of all sources are collected."""
        values = []
        for raw in (source[setting.name] for source in sources if setting.name in source):
            try:
                values.append(parse_value(setting, raw))
            except* InvalidValueError as errors:
                self.errors += (error_line(setting, raw, error) for error in _flatten(errors))
        if values:
            value = values[0]
        elif setting.default is None:
            return None
        else:
            value = setting.value_type.parse_text(setting.default)
        if setting.value_type is PATHS:
            return tuple(Path(path).expanduser().absolute() for path in value)
        return Path(value).expanduser().absolute() if setting.value_type is PATH else value

    def settings(self, values: dict[str, Any]) -> AgentSettings | None:
        """The settings, computed defaults included; None if there are errors."""
        values["root_dir"] = (values["root_dir"] or default_root_dir(self._environment)).absolute()
        values["node_name"] = values.pop("hostname_override") or self._host_name()
        values["v"] = (0 if self._on_terminal else 2) if values["v"] is None else values["v"]
        self._choose_server(values)
        self._choose_taints(values)
        self._choose_ports(values)
        self._choose_authorization(values)
        self._choose_periods(values)
        if self.errors:
            return None
        return AgentSettings(**values)

    def _host_name(self) -> str:
        try:
            name: str = NODE_NAME.parse_text(platform.node())
        except InvalidValueError as error:
            self.errors.append(f"hostname: {error}; pass --hostname-override")
            return ""
        return name

    def _choose_server(self, values: dict[str, Any]) -> None:
        kubeconfig, in_cluster = values["kubeconfig"], values["in_cluster"]
        if kubeconfig is not None and not kubeconfig.is_file():
            self.errors.append(
                f"--kubeconfig: no kubeconfig at {kubeconfig}; pass an existing file, or leave it "
                "out to use the embedded API server"
            )
        if kubeconfig is not None and in_cluster:
            self.errors.append("--in-cluster: cannot be combined with --kubeconfig")
        if in_cluster and not is_in_cluster(self._environment):
            self.errors.append(
                "--in-cluster: not running in a pod, KUBERNETES_SERVICE_HOST and "
                "KUBERNETES_SERVICE_PORT are not set; pass --kubeconfig"
            )
        if kubeconfig is None and in_cluster is None:
            values["in_cluster"] = in_cluster = is_in_cluster(self._environment)
        values["in_cluster"] = bool(in_cluster)
        if values["runtime"] is not None:
            return
        if kubeconfig is not None or in_cluster:
            cause = "with --kubeconfig" if kubeconfig is not None else "in a pod of a cluster"
            self.errors.append(
                f"--runtime: required {cause}; pass {', '.join(RUNTIMES)} or module:Class"
                + ("" if kubeconfig else ", or --no-in-cluster to use the embedded API server")
            )
        values["runtime"] = RUNTIMES[0]

    def _choose_taints(self, values: dict[str, Any]) -> None:
        if values["register_with_taints"] is not None:
            return
        is_external = values["kubeconfig"] is not None or values["in_cluster"]
        # Keeps DaemonSets of an external cluster from running as processes of this machine.
        needs_taint = is_external and values["runtime"] == PROCESS
        values["register_with_taints"] = (PROCESS_TAINT,) if needs_taint else ()

    def _choose_authorization(self, values: dict[str, Any]) -> None:
        """With the embedded API server, its CA authenticates all clients; no reviews are needed."""
        is_embedded = values["kubeconfig"] is None and not values["in_cluster"]
        if values["authentication_token_webhook"] is None:
            values["authentication_token_webhook"] = not is_embedded
        if values["authorization_mode"] is None:
            values["authorization_mode"] = "AlwaysAllow" if is_embedded else "Webhook"

    def _choose_periods(self, values: dict[str, Any]) -> None:
        total = values["shutdown_grace_period"]
        critical = values["shutdown_grace_period_critical_pods"]
        if critical is None:
            critical = values["shutdown_grace_period_critical_pods"] = total // 3
        if critical > total:
            self.errors.append(
                f"--shutdown-grace-period-critical-pods: {critical:g} s exceeds the {total:g} s of "
                "--shutdown-grace-period, of which it is a part"
            )

    def _choose_ports(self, values: dict[str, Any]) -> None:
        is_explicit = values["healthz_port"] is not None
        any_port = values["port"] == 0
        for name, port in _DEFAULT_PORTS.items():
            if values[name] is None:
                values[name] = 0 if any_port else port
        if is_explicit and values["healthz_port"] == 0:
            values["healthz_port"] = None
        option_by_port: dict[int, str] = {}
        for name in _DEFAULT_PORTS:
            port, option = values[name], BY_NAME[name].option
            if port and port in option_by_port:
                self.errors.append(f"{option}: {port} is already used by {option_by_port[port]}")
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


def _values_from_variables(environment: Mapping[str, str]) -> dict[str, RawValue]:
    return dict(_variables(environment))


def _variables(environment: Mapping[str, str]) -> Iterator[tuple[str, RawValue]]:
    for setting in SETTINGS:
        value = environment.get(setting.variable)
        if value is None or (not value and not setting.value_type.allow_empty):
            continue
        if not _is_service_variable(setting.variable, value):
            yield setting.name, RawValue(setting.variable, value)


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


def flag_text(setting: Setting, value: object) -> str | None:
    """Convert an option value of the command line to the text of the flag; None if not given."""
    if value is None or setting.value_type is not BOOL:
        return None if value is None else str(value)
    return "true" if value else "false"
