"""docs/node-server.md has every route, with its methods and who may, and no other."""

import re
from pathlib import Path

from podstatus.web.auth.attributes import node_subresources
from podstatus.web.routes import ROUTES, Route

PAGE = (Path(__file__).parents[2] / "docs" / "node-server.md").read_text()
ROWS = re.findall(r"^\| `(/[^`]*)` \| ([A-Z, ]+) \| ([^|]+) \| [^|]+ \|$", PAGE, re.MULTILINE)


def who_may(route: Route) -> str:
    if route.allows_anonymous:
        return "everybody"
    rights = " or ".join(f"`nodes/{part}`" for part in node_subresources(route.pattern))
    return f"here everybody, else {rights}" if route.allows_anonymous_local else rights


def test_the_page_has_every_route_and_no_other() -> None:
    there = [(route.pattern, ", ".join(route.methods), who_may(route)) for route in ROUTES]
    assert there == ROWS
