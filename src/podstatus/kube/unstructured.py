"""Looking into stored documents, in which anything may be absent or null."""

from typing import Any

from podstatus.kube.scalars.time import UNSET_TIME, Time, TimeError


def value_at(document: Any, *path: str) -> Any:
    """What is at that path; None if there is nothing."""
    for key in path:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def text_at(document: Any, *path: str) -> str:
    """The text at that path, empty if there is none."""
    found = value_at(document, *path)
    return found if isinstance(found, str) else ""


def list_at(document: Any, *path: str) -> list[Any]:
    """The list at that path, empty if there is none."""
    found = value_at(document, *path)
    return found if isinstance(found, list) else []


def map_at(document: Any, *path: str) -> dict[str, Any]:
    """The object at that path, empty if there is none."""
    found = value_at(document, *path)
    return found if isinstance(found, dict) else {}


def time_at(document: Any, *path: str) -> Time:
    """The time at that path, unset if there is none."""
    try:
        return Time.parse(value_at(document, *path))
    except TimeError:
        return UNSET_TIME
