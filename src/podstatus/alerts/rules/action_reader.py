"""Parse the actions of a rule, and check them against the table of action kinds."""

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import yaml

from podstatus.alerts.actions.critical_pods import pod_names_error
from podstatus.alerts.model import Action, Scope
from podstatus.alerts.rules.action_kinds import (
    ACTIONS,
    SEND_TIMEOUT_SECONDS,
    ActionKind,
    ActionOption,
    OptionKind,
)
from podstatus.alerts.rules.durations import RuleDurationError, parse_duration
from podstatus.alerts.rules.yaml_reader import YamlReader
from podstatus.kube.validation.names import label_value

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NAME = re.compile(r"(?:[a-z0-9.-]{1,253}/)?[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?", re.ASCII)
_PREFIXED_NAME = re.compile(
    r"(?:alerts\.podstatus\.dev/)?[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?", re.ASCII
)
_COUNT = re.compile(r"[0-9]{1,9}")


def read_action(reader: YamlReader, node: yaml.Node, scope: Scope) -> Action | None:
    """Parse an action: `{webhook: {url: …}}`, or just its kind if it needs no options."""
    if isinstance(node, yaml.ScalarNode):
        kinds: Mapping[str, yaml.Node | None] = {str(node.value): None}
    else:
        kinds = reader.mapping(node, "an action")
    if len(kinds) != 1:
        reader.add_error(node, "an action is a kind with its options: {event: {}}")
        return None
    [(name, options)] = kinds.items()
    kind = ACTIONS.get(name)
    if kind is None:
        reader.add_error(node, f"unknown action {name}; use one of {', '.join(ACTIONS)}")
        return None
    if scope not in kind.scopes:
        reader.add_error(node, f"{name} is for rules with scope {' or '.join(sorted(kind.scopes))}")
    return Action(
        kind=name, options=_options(reader, kind, node, options), place=reader.location(node)
    )


def _options(
    reader: YamlReader, kind: ActionKind, action: yaml.Node, node: yaml.Node | None
) -> dict[str, str]:
    options = {option.name: option for option in kind.options}
    if isinstance(node, yaml.ScalarNode) and node.value != "":
        # The value is not included: it may be a URL with a secret.
        reader.add_error(node, f"{kind.name} must be a mapping of its options, not a string")
        return {}
    fields = (
        reader.mapping(node, kind.name, options) if isinstance(node, yaml.CollectionNode) else {}
    )
    for option in kind.options:
        if option.required and option.name not in fields:
            reader.add_error(action, f"{kind.name} needs {option.name}: {option.meaning}")
    values = {name: _option(reader, kind, options[name], node) for name, node in fields.items()}
    if "tokenFile" in values and "@" in urlsplit(values.get("url") or "").netloc:
        reader.add_error(fields["url"], f"{kind.name}: a url with a user cannot have tokenFile")
    return {name: text for name, text in values.items() if text is not None}


def _option(
    reader: YamlReader, kind: ActionKind, option: ActionOption, node: yaml.Node
) -> str | None:
    what = f"{kind.name}: {option.name}"
    text = reader.text(node, what)
    if text is None:
        return None
    problem = _CHECKS[option.kind](text)
    if problem:
        # An invalid URL may contain a secret, too.
        quoted = "" if option.kind == "url" else f", not {text!r}"
        reader.add_error(node, f"{what} {problem}{quoted}")
    return None if problem else text


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    return "" if is_valid else "must be a URL such as https://example.org/alerts"


def _check_duration(text: str) -> str:
    try:
        return "" if parse_duration(text) > 0 else "must be more than 0"
    except RuleDurationError:
        return "must be a duration such as 30s or 2m"


def _check_timeout(text: str) -> str:
    problem = _check_duration(text)
    if problem or parse_duration(text) <= SEND_TIMEOUT_SECONDS:
        return problem
    return f"must be at most {SEND_TIMEOUT_SECONDS:g}s"


_CHECKS: Mapping[OptionKind, Callable[[str], str]] = {
    "url": _url,
    "file": lambda text: "" if text else "must be the path of a file",
    "span": _check_duration,
    "try": _check_timeout,
    "count": lambda text: "" if _COUNT.fullmatch(text) else "must be a number, 0 or more",
    "name": lambda text: (
        "" if _NAME.fullmatch(text) else "must be a name of letters, digits, -, _ and ."
    ),
    "own": lambda text: (
        ""
        if _PREFIXED_NAME.fullmatch(text)
        else "must be a name of letters, digits, -, _ and ., which is prefixed with "
        "alerts.podstatus.dev/"
    ),
    "value": lambda text: (
        "must be at most 63 letters, digits, -, _ and ., with a letter or digit at both ends"
        if label_value(text)
        else ""
    ),
    "effect": lambda text: "" if text in EFFECTS else f"must be one of {', '.join(EFFECTS)}",
    "pods": pod_names_error,
}
"""Checks by option kind; each returns the error in a text, empty if it is valid."""
