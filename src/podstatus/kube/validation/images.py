"""Parse the tag of an image name.

Upstream: pkg/util/parsers/parsers.go v1.36.4; github.com/distribution/reference.
"""

import re

_ALNUM = "[a-zA-Z0-9]"
_HOST_PART = f"(?:{_ALNUM}|{_ALNUM}[a-zA-Z0-9-]*{_ALNUM})"
_HOST = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_PATH = re.compile(f"{_PATH_PART}(?:/{_PATH_PART})*")
_TAG = r"\w[\w.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(rf"(.+?)(?::({_TAG}))?(@{_DIGEST})?", re.ASCII)
_BARE_ID = re.compile("[a-f0-9]{64}")
_NAME_LIMIT = 255


def is_latest(image: str) -> bool:
    """Return whether the tag is `latest`, or there is neither tag nor digest.

    False for an invalid image name.
    """
    match = _REFERENCE.fullmatch(image)
    if match is None or _BARE_ID.fullmatch(image) or not _is_name(match[1]):
        return False
    _, tag, digest = match.groups()
    return tag == "latest" or (tag is None and digest is None)


def _is_name(name: str) -> bool:
    host, slash, path = name.partition("/")
    if not slash or not (_names_host(host)):
        host, path = "docker.io", name
    whole = f"{host}/{path}"
    return bool(len(whole) <= _NAME_LIMIT and re.fullmatch(_HOST, host) and _PATH.fullmatch(path))


def _names_host(part: str) -> bool:
    return "." in part or ":" in part or part == "localhost" or part != part.lower()
