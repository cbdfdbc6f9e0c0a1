"""Find out what the settings are: flags before variables before the file before defaults.

SettingsError     something of it cannot be: all mistakes at once, each with its place
"""

import platform
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from podstatus.agent.settings.model import AgentSettings
from podstatus.agent.settings.schema.kubelet_config import ConfigFile, read_config
from podstatus.agent.settings.schema.scalars import NODE_NAME, PATH, PATHS, PROCESS, RUNTIMES, TRUTH
from podstatus.agent.settings.schema.setting import (
    Given,
    NotAllowedError,
    Setting,
    mistake,
    read_given,
)
from podstatus.agent.settings.schema.table import BY_NAME, SETTINGS
from podstatus.client.auth.files import UnreadableError, read_file
from podstatus.client.auth.load_config import is_in_cluster
from podstatus.kube.objects.node import Taint

_PREFIX = "PODSTATUS_"
PROCESS_TAINT = Taint(key="podstatus.dev/process", effect="NoExecute")
ROOT_DIR = "PODSTATUS_ROOT_DIR"
"""The variable that the other commands look at, too."""
RESTARTED = "PODSTATUS_RESTARTED"
"""What the supervisor tells the next agent, see `supervise`; not a setting."""
_PORTS = {"port": 10250, "healthz_port": 10248, "apiserver_port": 6443}


class SettingsError(Exception):
    """The settings cannot be used."""

    def __init__(self, mistakes: tuple[str, ...]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class Found(msgspec.Struct, frozen=True):
    """The settings, and what is worth a line."""

    settings: AgentSettings
    notes: tuple[str, ...] = ()


def default_root_dir(environment: Mapping[str, str]) -> Path:
    """Where everything is kept if nobody says otherwise."""
    data = environment.get("XDG_DATA_HOME", "")
    # Relative ones are to be ignored, says their specification.
    base = Path(data) if data.startswith("/") else Path("~/.local/share").expanduser()
    return base / "podstatus"


def read_settings(
    flags: Mapping[str, str | None], environment: Mapping[str, str], *, on_terminal: bool = False
) -> Found:
    """The settings. `flags` are those that were given, by the names of the settings.

    `on_terminal`: somebody reads along, and is not to be flooded. Raises SettingsError.
    """
    reading = _Reading(environment, on_terminal=on_terminal)
    by_flag = _given_by_flags(flags)
    by_variable = _given_by_variables(environment)
    file = reading.file(by_flag.get("config") or by_variable.get("config"))
    values = {
        setting.name: reading.value(setting, by_flag, by_variable, file.given)
        for setting in SETTINGS
    }
    settings = reading.settings(values)
    if settings is None:
        raise SettingsError(tuple(reading.mistakes))
    return Found(settings, (*file.notes, *_notes(environment)))


class _Reading:
    """Collects the mistakes on the way."""

    def __init__(self, environment: Mapping[str, str], *, on_terminal: bool) -> None:
        self._environment = environment
        self._on_terminal = on_terminal
        self.mistakes: list[str] = []

    def file(self, given: Given | None) -> ConfigFile:
        """What the file says, if there is one."""
        if given is None or not given.value:
            return ConfigFile({})
        path = Path(given.value).expanduser()
        try:
            text = read_file(path, pipes=True).decode()
        except (UnreadableError, UnicodeDecodeError) as error:
            why = error if isinstance(error, UnreadableError) else "it is no text in UTF-8"
            self.mistakes.append(f"{given.where}: cannot read {path}: {why}")
            return ConfigFile({})
        file = read_config(text, str(path))
        self.mistakes += file.mistakes
        return file

    def value(self, setting: Setting, *sources: Mapping[str, Given]) -> Any:
        """The value by the first source that has one; what any of them says wrong is kept."""
        read = []
        for given in (source[setting.name] for source in sources if setting.name in source):
            try:
                read.append(read_given(setting, given))
            except* NotAllowedError as errors:
                self.mistakes += (mistake(setting, given, error) for error in _each(errors))
        if read:
            value = read[0]
        elif setting.default is None:
            return None
        else:
            value = setting.kind.read_text(setting.default)
        if setting.kind is PATHS:
            return tuple(Path(path).expanduser().absolute() for path in value)
        return Path(value).expanduser().absolute() if setting.kind is PATH else value

    def settings(self, values: dict[str, Any]) -> AgentSettings | None:
        """All of it, with what depends on something; None if there are mistakes."""
        values["root_dir"] = (values["root_dir"] or default_root_dir(self._environment)).absolute()
        values["node_name"] = values.pop("hostname_override") or self._host_name()
        values["v"] = (0 if self._on_terminal else 2) if values["v"] is None else values["v"]
        self._choose_server(values)
        self._choose_taints(values)
        self._choose_ports(values)
        self._choose_who_may(values)
        self._choose_periods(values)
        if self.mistakes:
            return None
        return AgentSettings(**values)

    def _host_name(self) -> str:
        try:
            name: str = NODE_NAME.read_text(platform.node())
        except NotAllowedError as error:
            self.mistakes.append(f"the host's name: {error}; pass --hostname-override")
            return ""
        return name

    def _choose_server(self, values: dict[str, Any]) -> None:
        kubeconfig, in_cluster = values["kubeconfig"], values["in_cluster"]
        if kubeconfig is not None and not kubeconfig.is_file():
            self.mistakes.append(
                f"--kubeconfig: no kubeconfig at {kubeconfig}; name one that is there, or leave it "
                "out to use the embedded API server"
            )
        if kubeconfig is not None and in_cluster:
            self.mistakes.append("--in-cluster: there is a --kubeconfig too; leave one of them out")
        if in_cluster and not is_in_cluster(self._environment):
            self.mistakes.append(
                "--in-cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; "
                "this is no pod of a cluster, pass --kubeconfig"
            )
        if kubeconfig is None and in_cluster is None:
            values["in_cluster"] = in_cluster = is_in_cluster(self._environment)
        values["in_cluster"] = bool(in_cluster)
        if values["runtime"] is not None:
            return
        if kubeconfig is not None or in_cluster:
            where = "--kubeconfig" if kubeconfig is not None else "this is a pod of a cluster"
            self.mistakes.append(
                f"--runtime: is missing ({where}): on a cluster that is not our own it has to be "
                f"named: {' or '.join(RUNTIMES)}, or module:Class"
                + ("" if kubeconfig else ", or --no-in-cluster for an API server of our own")
            )
        values["runtime"] = RUNTIMES[0]

    def _choose_taints(self, values: dict[str, Any]) -> None:
        if values["register_with_taints"] is not None:
            return
        others = values["kubeconfig"] is not None or values["in_cluster"]
        by_surprise = others and values["runtime"] == PROCESS
        # Nobody's DaemonSet is to run on a laptop by surprise.
        values["register_with_taints"] = (PROCESS_TAINT,) if by_surprise else ()

    def _choose_who_may(self, values: dict[str, Any]) -> None:
        """Our own API server's certificates are its own alone; others are asked about others."""
        is_ours = values["kubeconfig"] is None and not values["in_cluster"]
        if values["authentication_token_webhook"] is None:
            values["authentication_token_webhook"] = not is_ours
        if values["authorization_mode"] is None:
            values["authorization_mode"] = "AlwaysAllow" if is_ours else "Webhook"

    def _choose_periods(self, values: dict[str, Any]) -> None:
        total = values["shutdown_grace_period"]
        critical = values["shutdown_grace_period_critical_pods"]
        if critical is None:
            critical = values["shutdown_grace_period_critical_pods"] = total // 3
        if critical > total:
            self.mistakes.append(
                f"--shutdown-grace-period-critical-pods: {critical:g} s are more than the "
                f"{total:g} s of --shutdown-grace-period, which they are a part of"
            )

    def _choose_ports(self, values: dict[str, Any]) -> None:
        chosen = values["healthz_port"] is not None
        any_port = values["port"] == 0
        for name, port in _PORTS.items():
            if values[name] is None:
                values[name] = 0 if any_port else port
        if chosen and values["healthz_port"] == 0:
            values["healthz_port"] = None
        taken: dict[int, str] = {}
        for name in _PORTS:
            port, option = values[name], BY_NAME[name].option
            if port and port in taken:
                self.mistakes.append(f"{option}: {port} is the port of {taken[port]} too")
            taken.setdefault(port, option)


def _each(group: BaseExceptionGroup[NotAllowedError]) -> Iterator[NotAllowedError]:
    for error in group.exceptions:
        if isinstance(error, NotAllowedError):
            yield error
        else:
            yield from _each(error)


def _given_by_flags(flags: Mapping[str, str | None]) -> dict[str, Given]:
    return {
        name: Given(BY_NAME[name].option, value)
        for name, value in flags.items()
        if value is not None
    }


def _given_by_variables(environment: Mapping[str, str]) -> dict[str, Given]:
    return dict(_variables(environment))


def _variables(environment: Mapping[str, str]) -> Iterator[tuple[str, Given]]:
    for setting in SETTINGS:
        value = environment.get(setting.variable)
        if value is None or (not value and not setting.kind.may_be_empty):
            continue
        if not _is_of_a_service(setting.variable, value):
            yield setting.name, Given(setting.variable, value)


def _notes(environment: Mapping[str, str]) -> Iterator[str]:
    """What in the environment looks like a setting and is none."""
    known = {setting.variable for setting in SETTINGS} | {RESTARTED}
    for name, value in sorted(environment.items()):
        if not name.startswith(_PREFIX) or name in known or _is_of_a_service(name, value):
            continue
        close = get_close_matches(name, known, n=1)
        guess = f"; did you mean {close[0]}?" if close else ""
        yield f"{name}: no such setting, it has no effect{guess}"


def _is_of_a_service(name: str, value: str) -> bool:
    """Whether a cluster has set it, because of a Service with the name podstatus."""
    rest = name.removeprefix(_PREFIX)
    return rest.startswith(("SERVICE_", "PORT_")) or ("://" in value and rest == "PORT")


def flag_text(setting: Setting, value: object) -> str | None:
    """What the command line said, as a text; None if nothing."""
    if value is None or setting.kind is not TRUTH:
        return None if value is None else str(value)
    return "true" if value else "false"
