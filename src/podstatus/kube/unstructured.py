"""Looking into stored documents, in which anything may be absent or null."""

from typing import Any

from podstatus.kube.scalars.time import UNSET_TIME, Time, TimeError


def nested_value(document: Any, *path: str) -> Any:
    """What is at that path; None if there is nothing."""
    for key in path:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def nested_str(document: Any, *path: str) -> str:
    """The text at that path, empty if there is none."""
    found = nested_value(document, *path)
    return found if isinstance(found, str) else ""


def nested_list(document: Any, *path: str) -> list[Any]:
    """The list at that path, empty if there is none."""
    found = nested_value(document, *path)
    return found if isinstance(found, list) else []


def nested_dict(document: Any, *path: str) -> dict[str, Any]:
    """The object at that path, empty if there is none."""
    found = nested_value(document, *path)
    return found if isinstance(found, dict) else {}


def nested_time(document: Any, *path: str) -> Time:
    """The time at that path, unset if there is none."""
    try:
        return Time.parse(nested_value(document, *path))
    except TimeError:
        return UNSET_TIME
