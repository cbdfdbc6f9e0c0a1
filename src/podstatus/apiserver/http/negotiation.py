"""What a client will take, by its Accept header: `application/json;as=Table;v=v1;g=meta.k8s.io`.

Alternatives are tried in the order that the client prefers; one that cannot be served is passed
over. We write JSON, nothing else.

Upstream: NegotiateMediaTypeOptions and AllowsMediaTypeTransform, pkg/endpoints/handlers of
apiserver v0.36.4; ParseAccept, munnerz/goautoneg.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

import msgspec

from podstatus.apiserver.http.errors import StatusError

META_V1 = "meta.k8s.io/v1"
_META_V1_BETA1 = "meta.k8s.io/v1beta1"

IncludeObject: TypeAlias = Literal["Metadata", "None", "Object"]
ConvertKind: TypeAlias = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]
"""What objects are turned into; empty to leave them as they are."""


class MediaTypeOptions(msgspec.Struct, frozen=True):
    """The form that a client is answered in."""

    kind: ConvertKind = ""
    api_version: str = META_V1
    """Of the form."""


class _Clause(msgspec.Struct, frozen=True):
    type: str
    subtype: str
    quality: float
    parameters: dict[str, str]

    def precedes(self, other: "_Clause") -> bool:
        if self.quality > other.quality:
            return True
        named = self.type != "*" and other.type == "*"
        return named or (self.subtype != "*" and other.subtype == "*")


@lru_cache(256)
def negotiate(accept: str) -> MediaTypeOptions:
    """The form to answer in. Raises Problem (406) if the client will take none that we have."""
    if not accept:
        return MediaTypeOptions()
    for clause in _sort_by_preference(map(_parse_clause, accept.split(","))):
        if (answer := _media_type_options(clause)) is not None:
            return answer
    raise StatusError(
        406, "NotAcceptable", "only the following media types are accepted: application/json"
    )


def wants_table(accept: str) -> bool:
    """Whether the client is to be sent a Table. Raises Problem (406)."""
    return negotiate(accept).kind == "Table"


def _parse_clause(text: str) -> _Clause | None:
    """One alternative; None if it makes no sense."""
    media_type, *rest = text.split(";")
    type_, _, subtype = (part.strip(" ") for part in media_type.partition("/"))
    if (not subtype and type_ != "*") or "/" in subtype:
        return None
    pairs = (item.partition("=") for item in rest)
    given = {key.strip(" "): value for key, _, value in pairs if value and "=" not in value}
    quality = _quality(given.pop("q", "1"))
    parameters = {key: value.strip(" ") for key, value in given.items()}
    return _Clause(type_, subtype or "*", quality, parameters)


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _sort_by_preference(clauses: Iterable[_Clause | None]) -> list[_Clause]:
    # Upstream's order is not transitive, so the way of sorting matters: each moves up past
    # those that it comes before, until it meets one that it does not.
    ordered: list[_Clause] = []
    for clause in clauses:
        if clause is not None:
            position = len(ordered)
            while position and clause.precedes(ordered[position - 1]):
                position -= 1
            ordered.insert(position, clause)
    return ordered


def _media_type_options(clause: _Clause) -> MediaTypeOptions | None:
    """What the alternative asks for; None if that cannot be served."""
    if (clause.type, clause.subtype) not in (
        ("application", "json"),
        ("application", "*"),
        ("*", "*"),
    ):
        return None
    given = clause.parameters
    if given.get("stream", "watch") != "watch" or given.get("sv", "v1") != "v1":
        return None
    if not given.keys() & {"as", "g", "v"}:
        return MediaTypeOptions()
    api_version = f"{given.get('g', '')}/{given.get('v', '')}"
    for form in get_args(ConvertKind):
        if form and form == given.get("as") and api_version in (META_V1, _META_V1_BETA1):
            return MediaTypeOptions(form, api_version)
    return None
