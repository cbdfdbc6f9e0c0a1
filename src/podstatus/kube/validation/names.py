"""Validation of names, labels and keys; each function returns error messages.

Upstream: apimachinery v0.36.4, pkg/util/validation/validation.go and pkg/api/validate/content.
"""

import re
from collections.abc import Callable

NameRule = Callable[[str], list[str]]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_RELAXED_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_RELAXED_SUBDOMAIN = rf"{_RELAXED_LABEL}(\.{_RELAXED_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_ENDS = "and must start and end with an alphanumeric character"
_LABEL_RULE = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    f"'-' or '.', {_ENDS}"
)
_RELAXED_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    f"'_', '-' or '.', {_ENDS}"
)
_QUALIFIED_RULE = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, "
    f"'-', '_' or '.', {_ENDS}"
)
_CONFIG_KEY_RULE = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"


def dns_label(text: str) -> list[str]:
    """Validate a DNS label: `my-name`."""
    messages = _too_long(text, 63)
    if not _matches(_LABEL, text):
        dotted = _matches(_SUBDOMAIN, text)
        rule = _rule(_LABEL_RULE, _LABEL, "my-name", "123-abc")
        messages.append("must not contain dots" if dotted else rule)
    return messages


def dns_subdomain(text: str, unit: str = "characters") -> list[str]:
    """Validate a DNS subdomain: `example.com`; `unit` is the one in the message."""
    messages = _too_long(text, 253, unit)
    if not _matches(_SUBDOMAIN, text):
        messages.append(_rule(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return messages


def relaxed_dns_subdomain(text: str) -> list[str]:
    """Validate a DNS subdomain with underscores, as allowed in search domains."""
    messages = _too_long(text, 253)
    if not _matches(_RELAXED_SUBDOMAIN, text):
        messages.append(_rule(_RELAXED_SUBDOMAIN_RULE, _RELAXED_SUBDOMAIN, "example.com"))
    return messages


def qualified_name(text: str) -> list[str]:
    """Validate a label key or condition type: `example.com/MyName` or `MyName`."""
    rule = _rule(_QUALIFIED_RULE, _QUALIFIED, "MyName", "my.name", "123-abc")
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {rule} {example}"]
    messages = _prefix_errors(prefix) if slash else []
    if not name:
        messages.append("name part must be non-empty")
    messages += [f"name part {detail}" for detail in _too_long(name, 63, "bytes")]
    if not _matches(_QUALIFIED, name):
        messages.append(f"name part {rule}")
    return messages


def label_value(text: str) -> list[str]:
    """Validate a label value, which may be empty."""
    messages = _too_long(text, 63, "bytes")
    if not _matches(_LABEL_VALUE, text):
        messages.append(_rule(_VALUE_RULE, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return messages


def port_name(text: str) -> list[str]:
    """Validate the name of a port: `http`."""
    messages = _too_long(text, 15)
    if not _matches("[-a-z0-9]+", text):
        messages.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        messages.append("must contain at least one letter (a-z)")
    if "--" in text:
        messages.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        messages.append("must not begin or end with a hyphen")
    return messages


def environment_name(text: str) -> list[str]:
    """Validate the name of an environment variable: printable characters except `=`."""
    messages = [] if text else ["environment variable name must be non-empty"]
    if not all(" " <= char <= "~" and char != "=" for char in text):
        messages.append(
            "a valid environment variable name must consist only of printable ASCII "
            "characters other than '='"
        )
    return messages


def config_key(text: str) -> list[str]:
    """Validate a key of a ConfigMap or Secret: a file name."""
    messages = _too_long(text, 253)
    if not _matches(_CONFIG_KEY, text):
        messages.append(_rule(_CONFIG_KEY_RULE, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if text == ".":
        messages.append("must not be '.'")
    elif text == "..":
        messages.append("must not be '..'")
    elif text.startswith(".."):
        messages.append("must not start with '..'")
    return messages


def path_segment(text: str) -> list[str]:
    """Validate that a name can be part of a URL path."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{char}'" for char in "/%" if char in text]


def _prefix_errors(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    return [f"prefix part {detail}" for detail in dns_subdomain(prefix, "bytes")]


def _too_long(text: str, limit: int, unit: str = "characters") -> list[str]:
    """Count bytes, although upstream's message says characters."""
    size = len(text.encode("utf-8", "surrogatepass"))
    return [f"must be no more than {limit} {unit}"] if size > limit else []


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text, re.ASCII) is not None


def _rule(rule: str, pattern: str, *examples: str) -> str:
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {listed}regex used for validation is '{pattern}')"
