"""A request, before it is sent."""

from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

MAX_OBJECT_BYTES = 16 << 20
"""Of an object. etcd takes some of a few megabytes at most."""
MAX_LIST_BYTES = 256 << 20
"""Of one page of a list."""
JSON = "application/json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


class RestRequest(msgspec.Struct, frozen=True):
    """What to ask of which path."""

    method: str
    path: str
    """With the query, ready to be sent."""
    body: bytes | None = None
    content_type: str = JSON
    max_bytes: int = MAX_OBJECT_BYTES
    """Of the body of the answer."""

    def __post_init__(self) -> None:
        body: object = self.body
        if not isinstance(body, bytes | None):
            kind = type(body).__name__
            raise TypeError(f"the body is a {kind}; its JSON text is expected, as bytes")

    @property
    def path_without_query(self) -> str:
        """The path without the query, for messages."""
        return self.path.partition("?")[0]


def with_query(path: str, query: Mapping[str, str | int]) -> str:
    """A path with those of the parameters that say something."""
    told = {key: value for key, value in query.items() if value}
    return f"{path}?{urlencode(told)}" if told else path
