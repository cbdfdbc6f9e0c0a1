"""Field selectors that a server rejects, or that are applied without one.

Imported when needed: it imports the rules of every resource.
"""

from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.request.selector_parameters import (
    FieldSelector,
    parse_field_selector,
)
from podstatus.apiserver.resources import ResourceInfo
from podstatus.apiserver.strategies.by_resource import NAME, NAMESPACE, STRATEGIES
from podstatus.cli.client.request_errors import RequestError


def check_field_selector(text: str, resource: ResourceInfo) -> FieldSelector:
    """Parse a field selector. Raises RequestError with the fields that the resource has."""
    try:
        return parse_field_selector(text, resource)
    except StatusError as error:
        common = (NAME, NAMESPACE) if resource.namespaced else (NAME,)
        fields = ", ".join(sorted((*common, *STRATEGIES[resource.plural].fields({}))))
        raise RequestError(
            f"--field-selector: {error}; supported for {resource.plural}: {fields}"
        ) from error
