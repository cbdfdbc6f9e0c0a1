"""Content negotiation: `Accept: application/json;as=Table;v=v1;g=meta.k8s.io`.

Alternatives are tried in the client's order of preference; unsupported ones are skipped. The server
sends JSON only.

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
"""The kind that objects are converted to; empty for none."""


class MediaTypeOptions(msgspec.Struct, frozen=True):
    """The negotiated form of a response."""

    kind: ConvertKind = ""
    api_version: str = META_V1
    """The API version of the converted form."""


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
    """Return the form to respond in. Raises StatusError (406) if none is acceptable."""
    if not accept:
        return MediaTypeOptions()
    for clause in _sort_by_preference(map(_parse_clause, accept.split(","))):
        if (options := _media_type_options(clause)) is not None:
            return options
    raise StatusError(
        406, "NotAcceptable", "only the following media types are accepted: application/json"
    )


def _parse_clause(text: str) -> _Clause | None:
    """Parse one alternative; None if malformed."""
    media_type, *rest = text.split(";")
    type_, _, subtype = (part.strip(" ") for part in media_type.partition("/"))
    if (not subtype and type_ != "*") or "/" in subtype:
        return None
    pairs = (item.partition("=") for item in rest)
    raw = {key.strip(" "): value for key, _, value in pairs if value and "=" not in value}
    quality = _quality(raw.pop("q", "1"))
    parameters = {key: value.strip(" ") for key, value in raw.items()}
    return _Clause(type_, subtype or "*", quality, parameters)


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _sort_by_preference(clauses: Iterable[_Clause | None]) -> list[_Clause]:
    # Upstream's order is not transitive, so the algorithm matters: each clause moves up past its
    # successors until it meets one that it does not precede.
    ordered: list[_Clause] = []
    for clause in clauses:
        if clause is not None:
            position = len(ordered)
            while position and clause.precedes(ordered[position - 1]):
                position -= 1
            ordered.insert(position, clause)
    return ordered


def _media_type_options(clause: _Clause) -> MediaTypeOptions | None:
    """Return the form that an alternative requests; None if it is not supported."""
    if (clause.type, clause.subtype) not in (
        ("application", "json"),
        ("application", "*"),
        ("*", "*"),
    ):
        return None
    parameters = clause.parameters
    if parameters.get("stream", "watch") != "watch" or parameters.get("sv", "v1") != "v1":
        return None
    if not parameters.keys() & {"as", "g", "v"}:
        return MediaTypeOptions()
    api_version = f"{parameters.get('g', '')}/{parameters.get('v', '')}"
    for form in get_args(ConvertKind):
        if form and form == parameters.get("as") and api_version in (META_V1, _META_V1_BETA1):
            return MediaTypeOptions(form, api_version)
    return None
