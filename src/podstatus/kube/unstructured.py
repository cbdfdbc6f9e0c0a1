"""Read fields of plain JSON documents, in which any field may be absent or null."""

from typing import Any

from podstatus.kube.scalars.time import UNSET_TIME, Time, TimeError


def nested_value(document: Any, *path: str) -> Any:
    """Return the value at this path, None if there is none."""
    for key in path:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def nested_str(document: Any, *path: str) -> str:
    """Return the string at this path, empty if there is none."""
    value = nested_value(document, *path)
    return value if isinstance(value, str) else ""


def nested_list(document: Any, *path: str) -> list[Any]:
    """Return the list at this path, empty if there is none."""
    value = nested_value(document, *path)
    return value if isinstance(value, list) else []


def nested_dict(document: Any, *path: str) -> dict[str, Any]:
    """Return the object at this path, empty if there is none."""
    value = nested_value(document, *path)
    return value if isinstance(value, dict) else {}


def nested_time(document: Any, *path: str) -> Time:
    """Return the time at this path, unset if there is none."""
    try:
        return Time.parse(nested_value(document, *path))
    except TimeError:
        return UNSET_TIME
