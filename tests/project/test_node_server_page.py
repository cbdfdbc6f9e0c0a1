"""docs/reference/http/kubelet-endpoints.md lists exactly the routes, with their authorization."""

import re
from pathlib import Path

from podstatus.web.auth.authorizer import node_subresources
from podstatus.web.routes import ROUTES, Route

PAGE = (
    Path(__file__).parents[2] / "docs" / "reference" / "http" / "kubelet-endpoints.md"
).read_text()
ROWS = re.findall(r"^\| `(/[^`]*)` \| ([A-Z, ]+) \| ([^|]+) \| [^|]+ \|$", PAGE, re.MULTILINE)


def authorization(route: Route) -> str:
    if route.allows_anonymous:
        return "none"
    rights = " or ".join(f"`nodes/{part}`" for part in node_subresources(route.pattern))
    return f"loopback, else {rights}" if route.allows_anonymous_local else rights


def test_the_page_has_every_route_and_no_other() -> None:
    there = [(route.pattern, ", ".join(route.methods), authorization(route)) for route in ROUTES]
    assert there == ROWS
