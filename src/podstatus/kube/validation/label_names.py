"""Validation of label keys and values, with the messages of kube-apiserver.

Upstream: IsLabelKey, IsLabelValue and IsDNS1123Subdomain, apimachinery v0.36.4,
pkg/api/validate/content. Lengths are counted in bytes.
"""

import re

_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_MAX_NAME = 63
_MAX_PREFIX = 253

_ENDS = "and must start and end with an alphanumeric character"
_NAME_RULE = (
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, "
    f"'-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)
_PREFIX_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    f"'-' or '.', {_ENDS} "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_KEY_RULE = (
    f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)


def label_key_errors(key: str) -> list[str]:
    """Return the errors of a label key: a name, optionally after a DNS subdomain and a slash."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [_KEY_RULE]
    messages = [f"prefix part {message}" for message in _prefix_errors(prefix)] if slash else []
    return messages + [f"name part {message}" for message in _name_errors(name)]


def label_value_errors(value: str) -> list[str]:
    """Return the errors of a label value."""
    messages = _too_long(value, _MAX_NAME)
    return messages if re.fullmatch(_VALUE, value) else [*messages, _VALUE_RULE]


def _prefix_errors(prefix: str) -> list[str]:
    if not prefix:
        return ["must be non-empty"]
    messages = _too_long(prefix, _MAX_PREFIX)
    return messages if re.fullmatch(_SUBDOMAIN, prefix) else [*messages, _PREFIX_RULE]


def _name_errors(name: str) -> list[str]:
    messages = _too_long(name, _MAX_NAME) if name else ["must be non-empty"]
    return messages if re.fullmatch(_NAME, name) else [*messages, _NAME_RULE]


def _too_long(text: str, limit: int) -> list[str]:
    length = len(text.encode(errors="surrogatepass"))
    return [f"must be no more than {limit} bytes"] if length > limit else []
