"""Names of images: what they mean, and whether a pull is needed.

Upstream: ParseImageName, pkg/util/parsers/parsers.go, and applyDefaultImageTag,
pkg/kubelet/images/image_manager.go, v1.36.4; ParseNormalizedNamed of distribution/reference.
"""

import re

from podstatus.kube.scalars.go_text import go_quoted
from podstatus.runtime.port import CannotStartError

INVALID_IMAGE_NAME = "InvalidImageName"
_FORMAT = "invalid reference format"
_DEFAULT_DOMAIN, _OFFICIAL = "docker.io", "library"
_DEFAULT_TAG = "latest"
_MAX_NAME_LENGTH = 255
_ALWAYS, _NEVER, _IF_NOT_PRESENT = "Always", "Never", "IfNotPresent"
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_PATH = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?")
_TAG = re.compile(r"[\w][\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}")
_IMAGE_ID = re.compile(r"[a-f0-9]{64}")


def image_to_pull(image: str) -> str:
    """Return the name with the tag `latest` if it has neither tag nor digest.

    Raises CannotStartError.
    """
    repository(image)
    name = image.rpartition("/")[2]
    return image if "@" in name or ":" in name else f"{image}:{_DEFAULT_TAG}"


def repository(image: str) -> str:
    """Return registry and path: `docker.io/library/busybox`. Raises CannotStartError."""
    name, at, digest = image.partition("@")
    name, tag = _split_tag(name)
    domain, path = _split_domain(name)
    if _IMAGE_ID.fullmatch(name):
        why = f"invalid repository name ({name}), cannot specify 64-byte hexadecimal strings"
        raise _invalid(image, why)
    if path.lower() != path:
        raise _invalid(image, f"{_FORMAT}: repository name ({path}) must be lowercase")
    is_valid = (
        _PATH.fullmatch(path)
        and _DOMAIN.fullmatch(domain)
        and (tag is None or _TAG.fullmatch(tag))
        and (not at or _DIGEST.fullmatch(digest))
    )
    if not is_valid:
        raise _invalid(image, _FORMAT)
    if len(path) > _MAX_NAME_LENGTH:
        raise _invalid(
            image, f"repository name must not be more than {_MAX_NAME_LENGTH} characters"
        )
    return f"{domain}/{path}"


def pull_policy(image: str, policy: str) -> str:
    """Return the policy; without one, Always for the tag `latest`."""
    if policy in (_ALWAYS, _NEVER, _IF_NOT_PRESENT):
        return policy
    return _ALWAYS if image_to_pull(image).endswith(f":{_DEFAULT_TAG}") else _IF_NOT_PRESENT


def _split_tag(name: str) -> tuple[str, str | None]:
    head, slash, last = name.rpartition("/")
    base, colon, tag = last.partition(":")
    return f"{head}{slash}{base}", tag if colon else None


def _split_domain(name: str) -> tuple[str, str]:
    first, slash, rest = name.partition("/")
    is_domain = bool(slash) and (
        "." in first or ":" in first or first == "localhost" or first.lower() != first
    )
    domain, path = (first, rest) if is_domain else (_DEFAULT_DOMAIN, name)
    if domain == f"index.{_DEFAULT_DOMAIN}":
        domain = _DEFAULT_DOMAIN
    if domain == _DEFAULT_DOMAIN and "/" not in path:
        path = f"{_OFFICIAL}/{path}"
    return domain, path


def _invalid(image: str, why: str) -> CannotStartError:
    return CannotStartError(
        INVALID_IMAGE_NAME,
        f"Failed to apply default image tag {go_quoted(image)}: couldn't parse image name "
        f"{go_quoted(image)}: {why}",
    )
