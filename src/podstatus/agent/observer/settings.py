"""What `podstatus observe` is told: the settings of `run` that mean something to who looks on."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import structs

from podstatus.agent.settings.load import (
    LoadedSettings,
    SettingsError,
    default_root_dir,
    load_settings,
)
from podstatus.agent.settings.schema.scalars import NODE_NAME
from podstatus.agent.settings.schema.setting import InvalidValueError, Setting, abbreviate
from podstatus.agent.settings.schema.table import BY_NAME, SETTINGS

_NO_RUNTIME = "simulated"
"""Which one does not matter: nothing is run."""
_NO_CLUSTER = (
    "--kubeconfig: is missing; name the cluster to observe (that of an agent with an API server of "
    "its own is the file kubeconfig in its root-dir)"
)


def _override(
    name: str, help: str, *, default: str | None = None, default_help: str = ""
) -> Setting:
    return structs.replace(BY_NAME[name], help=help, default=default, default_help=default_help)


OBSERVE_SETTINGS: tuple[Setting, ...] = (
    _override(
        "root_dir",
        "The folder that the history, the certificate and the token are kept in.",
        default_help="$XDG_DATA_HOME/podstatus-observer, or ~/.local/share/podstatus-observer",
    ),
    _override("kubeconfig", "The cluster to observe.", default_help="none"),
    _override(
        "in_cluster",
        "Observe the cluster that this pod runs in.",
        default_help="if this is a pod of a cluster and no kubeconfig is given",
    ),
    _override("address", "Where the HTTPS port is.", default="127.0.0.1"),
    _override("port", "The HTTPS port; 0 for any.", default="10270"),
    BY_NAME["tls_cert_file"],
    BY_NAME["tls_private_key_file"],
    _override("client_ca_file", BY_NAME["client_ca_file"].help, default_help="none"),
    _override(
        "authentication_token_webhook",
        "Ask the API server whose the tokens of others are; it has to be allowed to us.",
        default="false",
    ),
    BY_NAME["authentication_token_webhook_cache_ttl"],
    _override("authorization_mode", BY_NAME["authorization_mode"].help, default="Webhook"),
    BY_NAME["authorization_webhook_cache_authorized_ttl"],
    BY_NAME["authorization_webhook_cache_unauthorized_ttl"],
    BY_NAME["history"],
    BY_NAME["history_days"],
    BY_NAME["history_size"],
    BY_NAME["v"],
    BY_NAME["log_format"],
)
_SETTING_NAMES = frozenset(setting.name for setting in OBSERVE_SETTINGS)


def default_observer_dir(environment: Mapping[str, str]) -> Path:
    """Where everything is kept if nobody says otherwise: not where an agent keeps its own."""
    return default_root_dir(environment).with_name("podstatus-observer")


def load_observe_settings(
    flags: Mapping[str, str | None],
    environment: Mapping[str, str],
    names: Mapping[str, str],
    *,
    on_terminal: bool = False,
) -> LoadedSettings:
    """The settings. `names` are what options may have as a name, or empty. Raises SettingsError."""
    others = {setting.variable for setting in SETTINGS if setting.name not in _SETTING_NAMES}
    ours = {name: value for name, value in environment.items() if name not in others}
    given = {**_with_defaults(flags, ours, environment), "runtime": _NO_RUNTIME}
    mistakes = [*_invalid_names(names), *_missing_kubeconfig(given, ours)]
    if mistakes:
        raise SettingsError(tuple(mistakes))
    found = load_settings(given, ours, on_terminal=on_terminal)
    if found.settings.embedded:
        raise SettingsError((_NO_CLUSTER,))
    return found


def _invalid_names(names: Mapping[str, str]) -> Iterator[str]:
    for option, name in names.items():
        try:
            NODE_NAME.parse_text(name or "any")
        except InvalidValueError:
            yield f"{option}: {abbreviate(name)} is no name that one can have"


def _missing_kubeconfig(flags: Mapping[str, str | None], ours: Mapping[str, str]) -> Iterator[str]:
    path = flags.get("kubeconfig") or ours.get(BY_NAME["kubeconfig"].variable)
    if path and not Path(path).expanduser().is_file():
        yield f"--kubeconfig: no kubeconfig at {path}; name one that is there"


def _with_defaults(
    flags: Mapping[str, str | None], ours: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str | None]:
    """What is given, and what is so unless it is."""
    own = {it.name: it.default for it in OBSERVE_SETTINGS if it.default is not None}
    own["root_dir"] = str(default_observer_dir(environment))
    unsaid = {name: text for name, text in own.items() if not ours.get(BY_NAME[name].variable)}
    return {**unsaid, **{name: text for name, text in flags.items() if text is not None}}
