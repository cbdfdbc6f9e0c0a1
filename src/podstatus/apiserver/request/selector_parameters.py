"""Label selectors and field selectors of lists and watches.

A field selector is written `spec.nodeName=n1,status.phase!=Running`. It can name only the fields
that its resource declares as selectable. In values, a backslash escapes a backslash, a comma or an
equals sign.

Upstream: ParseSelector, apimachinery v0.36.4, pkg/fields/selector.go; the conversions of field
labels in pkg/apis/core/v1/conversion.go v1.36.4 and pkg/runtime/conversion.go v0.36.4.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec

from podstatus.apiserver.http.errors import bad_request
from podstatus.apiserver.resources import ResourceInfo
from podstatus.apiserver.strategies.by_resource import NAME, NAMESPACE, STRATEGIES
from podstatus.kube import label_selector
from podstatus.kube.label_selector import LabelSelectorError, ParsedLabelSelector
from podstatus.kube.scalars.go_text import go_quoted

_TERM = re.compile(r"(?:\\.|[^\\,])*\\?", re.DOTALL)
_OPERATOR = re.compile("!=|==|=")
_FIELD_ALIASES = {"spec.host": "spec.nodeName"}


class FieldRequirement(msgspec.Struct, frozen=True):
    """A field that must, or must not, have a value."""

    field: str
    value: str
    equal: bool = True


class FieldSelector(msgspec.Struct, frozen=True):
    """A conjunction of requirements; without any it matches everything."""

    requirements: tuple[FieldRequirement, ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Return whether an object with these fields (see `selectable_fields`) is selected."""
        return all(
            (fields.get(requirement.field, "") == requirement.value) is requirement.equal
            for requirement in self.requirements
        )


def parse_field_selector(text: str, resource: ResourceInfo) -> FieldSelector:
    """Parse a `fieldSelector`. Raises StatusError (400)."""
    requirements = [_requirement(term, text) for term in sorted(_terms(text)) if term]
    # A bare operator requires nothing.
    effective = [item for item in requirements if item.field or item.value]
    return FieldSelector(tuple(_check_field(item, resource) for item in effective))


def _terms(text: str) -> Iterator[str]:
    position = 0
    while position <= len(text):
        match = _TERM.match(text, position)
        assert match is not None  # noqa: S101 - the pattern also matches the empty string
        yield match[0]
        position = match.end() + 1


def _requirement(term: str, text: str) -> FieldRequirement:
    operator = _OPERATOR.search(term)
    if operator is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
    value = _unescape(term[operator.end() :])
    return FieldRequirement(term[: operator.start()], value, operator[0] != "!=")


def _unescape(text: str) -> str:
    characters, unescaped = iter(text), []
    for character in characters:
        if character in ",=":
            raise bad_request(
                f"invalid field selector: unescaped character in value: {ord(character)}"
            )
        if character == "\\":
            character = next(characters, "")  # noqa: PLW2901
            if character not in ("\\", ",", "="):
                sequence = f"invalid escape sequence: \\{character}"
                raise bad_request(f"invalid field selector: {sequence}")
        unescaped.append(character)
    return "".join(unescaped)


def _check_field(requirement: FieldRequirement, resource: ResourceInfo) -> FieldRequirement:
    field = _FIELD_ALIASES.get(requirement.field, requirement.field)
    selectable = {} if resource.computed else STRATEGIES[resource.plural].fields({})
    if field in selectable or field == NAME or (field == NAMESPACE and resource.namespaced):
        return msgspec.structs.replace(requirement, field=field)
    if selectable:
        raise bad_request(f"field label not supported: {requirement.field}")
    raise bad_request(
        f"{go_quoted(requirement.field)} is not a known field selector: "
        f"only {go_quoted(NAME)}, {go_quoted(NAMESPACE)}"
    )


def parse_label_selector(text: str) -> ParsedLabelSelector:
    """Parse a `labelSelector`. Raises StatusError (400)."""
    try:
        return label_selector.parse_label_selector(text)
    except LabelSelectorError as error:
        raise bad_request(str(error)) from error
