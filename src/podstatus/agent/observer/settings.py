"""The settings of `podstatus observe`: those of `run` that apply to an observer."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import structs

from podstatus.agent.settings.default_root_dir import default_root_dir
from podstatus.agent.settings.load import LoadedSettings, SettingsError, load_settings
from podstatus.agent.settings.model import BY_NAME, SETTINGS
from podstatus.agent.settings.paths import PATH
from podstatus.agent.settings.schema.scalars import NODE_NAME
from podstatus.agent.settings.schema.setting import InvalidValueError, Setting, abbreviate

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


OBSERVE_SETTINGS: tuple[Setting, ...] = (
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
_SETTING_NAMES = frozenset(setting.name for setting in OBSERVE_SETTINGS)


def default_observer_dir(environment: Mapping[str, str]) -> Path:
    """Return the default of `--root-dir`; it differs from that of an agent."""
    return default_root_dir(environment).with_name("podstatus-observer")


def load_observe_settings(
    flags: Mapping[str, str | None],
    environment: Mapping[str, str],
    names: Mapping[str, str],
    *,
    on_terminal: bool = False,
) -> LoadedSettings:
    """Load the settings of an observer. Variables of settings that it does not have are ignored.

    `names`: option -> namespace or node name to validate, empty if not given.
    Raises SettingsError.
    """
    ignored = {setting.variable for setting in SETTINGS if setting.name not in _SETTING_NAMES}
    variables = {name: value for name, value in environment.items() if name not in ignored}
    values = {**_with_defaults(flags, variables, environment), "runtime": _NO_RUNTIME}
    errors = [*_invalid_names(names), *_missing_kubeconfig(values, variables)]
    if errors:
        raise SettingsError(tuple(errors))
    loaded = load_settings(values, variables, on_terminal=on_terminal)
    if loaded.settings.embedded:
        raise SettingsError((_NO_CLUSTER,))
    return loaded


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
    own = (it for it in OBSERVE_SETTINGS if it is not BY_NAME[it.name])
    defaults = {it.name: it.default for it in own if it.default is not None}
    defaults["root_dir"] = str(default_observer_dir(environment))
    unset = {
        name: text for name, text in defaults.items() if not variables.get(BY_NAME[name].variable)
    }
    return {**unset, **{name: text for name, text in flags.items() if text is not None}}
