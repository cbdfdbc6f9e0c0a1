"""The value of a request before it is sent."""

from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

MAX_OBJECT_BYTES = 16 << 20
"""Maximum size of an object. etcd stores a few megabytes at most."""
MAX_LIST_BYTES = 256 << 20
"""Maximum size of one page of a list."""
JSON = "application/json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


class RestRequest(msgspec.Struct, frozen=True):
    """A request: method, path and body."""

    method: str
    path: str
    """Path and query, percent-encoded."""
    body: bytes | None = None
    content_type: str = JSON
    max_bytes: int = MAX_OBJECT_BYTES
    """Maximum size of the response body."""

    def __post_init__(self) -> None:
        body: object = self.body
        if not isinstance(body, bytes | None):
            kind = type(body).__name__
            raise TypeError(f"the body is a {kind}; pass JSON text as bytes")

    @property
    def path_without_query(self) -> str:
        """Return the path without the query, for messages."""
        return self.path.partition("?")[0]


def with_query(path: str, query: Mapping[str, str | int]) -> str:
    """Append the non-empty parameters to a path."""
    parameters = {key: value for key, value in query.items() if value}
    return f"{path}?{urlencode(parameters)}" if parameters else path
