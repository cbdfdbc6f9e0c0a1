"""What a server says of a body that does not fit the Go types."""

from typing import Any


def handled(kind: str, why: str) -> tuple[int, str]:
    """The refusal of an object that cannot be decoded."""
    return 400, f'{kind} in version "v1" cannot be handled as a {kind}: {why}'


def unmarshal(what: str, field: str, go_type: str) -> str:
    return f"json: cannot unmarshal {what} into Go struct field {field} of type {go_type}"


def told(answer: tuple[int, Any]) -> tuple[int, str]:
    code, status = answer
    assert status["kind"] == "Status", status
    return code, status["message"]
