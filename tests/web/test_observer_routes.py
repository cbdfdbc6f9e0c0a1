"""An observer has the query API, and no endpoints that need a node."""

import json

import pytest

from podstatus.web.routes import OBSERVER_ROUTES, ROUTES, RouteKind, match_route
from podstatus.web.v1.openapi import openapi_document

NODES_ALONE = {
    RouteKind.PODS,
    RouteKind.RUNNING_PODS,
    RouteKind.CONTAINER_LOGS,
    RouteKind.EXEC,
    RouteKind.ATTACH,
    RouteKind.DRAIN,
    RouteKind.STATS,
    RouteKind.CONFIGZ,
}


def test_a_route_is_for_all_or_for_nodes_alone() -> None:
    assert {route.kind for route in OBSERVER_ROUTES} == set(RouteKind) - NODES_ALONE
    assert set(OBSERVER_ROUTES) <= set(ROUTES)


@pytest.mark.parametrize(
    "path", ["/pods", "/exec/ns/pod/c", "/containerLogs/ns/pod/c", "/drain", "/metrics/cadvisor"]
)
def test_what_only_a_node_can_tell_is_not_there(path: str) -> None:
    assert match_route(path) is not None
    assert match_route(path, OBSERVER_ROUTES) is None


def test_all_that_changes_something_is_for_nodes_alone() -> None:
    assert {method for route in OBSERVER_ROUTES for method in route.methods} == {"GET", "HEAD"}


def test_the_document_has_what_is_there() -> None:
    paths = json.loads(openapi_document(OBSERVER_ROUTES))["paths"]
    assert set(paths) == {route.pattern for route in OBSERVER_ROUTES}
