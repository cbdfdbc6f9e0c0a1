"""Authorization of every route for every identity, and the caches of reviews."""

import gc
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import aiohttp
import pytest
from yarl import URL

from podstatus.kube.objects.authentication import UserInfo
from podstatus.testing.clock import FakeClock
from podstatus.web.auth.authorizer import (
    Authorizer,
    RequestAttributes,
    bearer_token,
    certificate_user,
    node_subresources,
    request_verb,
)
from podstatus.web.errors import HttpError
from podstatus.web.ports import ServerOptions
from podstatus.web.routes import ROUTES, Route
from tests.support.web.node_server import NODE, TOKEN, FakeReviews, Scene, other_address, serve

EVERYWHERE = {"/healthz", "/healthz/{check}"}
HERE = {"/pods", "/runningpods/", "/stats/summary", "/openapi.json", "/openapi/v3"}
"""And all paths below `/v1/`."""
IDENTITIES: dict[str, dict[str, str]] = {
    "anonymous": {"token": ""},
    "the agent's token": {"token": TOKEN},
    "nearly the agent's token": {"token": f"{TOKEN}x"},
    "a certificate with rights": {"token": "", "certificate": "ann"},
    "a certificate without": {"token": "", "certificate": "bob"},
    "a token with rights": {"token": "token-of-ann"},
    "a token without": {"token": "token-of-bob"},
    "an unknown token": {"token": "token-of-eve"},
    "no text": {"token": "t\xe9"},
}
ANN, BOB = "token-of-ann", "token-of-bob"
IN = {"the agent's token", "a certificate with rights", "a token with rights"}
KNOWN = IN | {"a certificate without", "a token without"}


def test_only_status_reads_are_open_and_only_here() -> None:
    here = {route.pattern for route in ROUTES if route.allows_anonymous_local}
    own = {pattern for pattern in here if pattern.startswith("/v1/")}
    assert here - own == HERE
    assert own == {route.pattern for route in ROUTES if route.pattern.startswith("/v1/")}
    assert {route.pattern for route in ROUTES if route.allows_anonymous} == EVERYWHERE


def test_what_is_open_changes_nothing() -> None:
    changing = {"POST", "PUT", "PATCH", "DELETE"}
    opened = [route for route in ROUTES if route.allows_anonymous_local or route.allows_anonymous]
    assert not [route.pattern for route in opened if changing & set(route.methods)]


@pytest.mark.parametrize("asks", [True, False], ids=["Webhook", "AlwaysAllow"])
@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_authorization_of_every_route_and_identity(
    tmp_path: Path, asks: bool, where: str
) -> None:
    address = "127.0.0.1" if where == "here" else other_address()
    async with serve(
        tmp_path, address=address, token_webhook=True, authorization_webhook=asks
    ) as scene:
        found = {name: await _codes(scene, **identity) for name, identity in IDENTITIES.items()}
    opened = {route.pattern for route in ROUTES if route.allows_anonymous}
    if where == "here":
        opened |= {route.pattern for route in ROUTES if route.allows_anonymous_local}
    for identity, codes in found.items():
        refused = {asked: code for asked, code in codes.items() if code in (401, 403)}
        closed = {asked for asked in codes if asked[1] not in opened}
        if identity not in KNOWN:
            assert refused == dict.fromkeys(closed, 401), identity
        elif asks and identity not in IN:
            assert refused == dict.fromkeys(closed, 403), identity
        else:
            assert refused == {}, identity


async def _codes(scene: Scene, **identity: str) -> dict[tuple[str, str], int]:
    """The response codes of all routes, and of a path without one."""
    codes = {}
    asked = [(method, it.pattern, _path(it)) for it in ROUTES for method in it.methods]
    async with scene.client(**identity) as session:
        for method, pattern, path in (*asked, ("GET", "/nope", "/nope")):
            async with session.request(method, path) as answer:
                codes[method, pattern] = answer.status
    return codes


def _path(route: Route) -> str:
    names = {"check": "ping", "file": "none", "uid": "uid-p", "namespace": "ns", "pod": "p"}
    return route.pattern.format(**names, container="app", name="p")


async def test_tokens_of_others_are_nothing_unless_the_api_server_is_asked(scene: Scene) -> None:
    code, _ = await scene.get("/logs/", token=ANN)
    assert (code, scene.reviews.tokens_asked) == (401, [])


async def test_a_certificate_of_another_authority_does_not_connect(scene: Scene) -> None:
    async with scene.client(certificate="ann", by="strangers") as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get("/logs/")


async def test_rejections_have_upstreams_texts(tmp_path: Path) -> None:
    async with serve(tmp_path, token_webhook=True, authorization_webhook=True) as scene:
        answers = [
            await scene.get("/logs/", token=""),
            await scene.get("/logs/", token=BOB),
            await scene.get("/containerLogs/ns/p/app", token=BOB),
        ]
        scene.reviews.down = True
        answers.append(await scene.get("/logs/", token=ANN))
        async with scene.client("", certificate="ann") as session, session.get("/logs/") as answer:
            answers.append((answer.status, await answer.text()))
    assert answers == [
        (401, "Unauthorized\n"),
        (403, "Forbidden (user=bob, verb=get, resource=nodes, subresource(s)=[log])\n"),
        (403, "Forbidden (user=bob, verb=get, resource=nodes, subresource(s)=[proxy])\n"),
        (401, "Unauthorized\n"),
        (
            500,
            "Authorization error (user=ann, verb=get, resource=nodes, subresource=log)\n",
        ),
    ]


@pytest.mark.parametrize("path", ["/logs/", "/%6cogs/", "/log%73/podstatus.log"])
async def test_what_may_be_asked_does_not_depend_on_how_it_is_written(
    tmp_path: Path, path: str
) -> None:
    async with serve(tmp_path, token_webhook=True, authorization_webhook=True) as scene:
        scene.reviews.rights = {("ann", "get", "proxy")}
        url = URL(f"{scene.url}{path}", encoded=True)
        async with scene.client(ANN) as session, session.get(url) as answer:
            assert (answer.status, _subresources(scene.reviews)) == (403, ["log"])


def _subresources(reviews: FakeReviews) -> list[str]:
    about = [spec.resource_attributes for spec in reviews.rights_asked]
    return [attributes.subresource for attributes in about if attributes is not None]


class Watched:
    """An authorizer in virtual time, and the reviews it sends."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.reviews = FakeReviews()
        wishes = ServerOptions(
            node_name=NODE, token=TOKEN, token_webhook=True, authorization_webhook=True
        )
        self.gate = Authorizer(wishes, self.reviews, self.clock)

    async def code(self, token: str, path: str = "/logs/") -> int:
        try:
            await self.gate.authorize(
                RequestAttributes(method="GET", path=path, token=token.encode())
            )
        except HttpError as refusal:
            return int(refusal.code)
        return 200


async def test_answers_are_remembered_for_a_while() -> None:
    watched = Watched()
    reviews = watched.reviews

    async def asked(token: str, code: int) -> tuple[int, int]:
        before = len(reviews.tokens_asked), len(reviews.rights_asked)
        assert await watched.code(token) == code
        return len(reviews.tokens_asked) - before[0], len(reviews.rights_asked) - before[1]

    assert await asked("token-of-ann", 200) == (1, 1)
    assert await asked("token-of-bob", 403) == (1, 1)
    assert await asked("token-of-eve", 401) == (1, 0)
    await watched.clock.advance(29)
    assert await asked("token-of-ann", 200) == (0, 0)
    assert await asked("token-of-bob", 403) == (0, 0)
    assert await asked("token-of-eve", 401) == (0, 0)
    reviews.rights.add(("bob", "get", "log"))
    await watched.clock.advance(1)
    assert await asked("token-of-bob", 200) == (0, 1)
    await watched.clock.advance(90)
    assert await asked("token-of-ann", 200) == (1, 0)
    await watched.clock.advance(180)
    reviews.rights.clear()
    assert await asked("token-of-ann", 403) == (1, 1)


@pytest.mark.parametrize("step", [-3600, 3600])
async def test_decisions_expire_by_the_monotonic_clock(step: int) -> None:
    watched = Watched()
    assert await watched.code("token-of-ann") == 200
    watched.clock.step(step)
    assert await watched.code("token-of-ann") == 200
    assert len(watched.reviews.tokens_asked) == 1
    await watched.clock.advance(600)
    assert await watched.code("token-of-ann") == 200
    assert len(watched.reviews.tokens_asked) == 2


async def test_what_is_remembered_is_bounded_and_holds_no_token() -> None:
    watched = Watched()
    for number in range(1100):
        assert await watched.code(f"token-{number}") == 401
    asked = watched.reviews.tokens_asked
    assert len(asked) == 1100
    assert await watched.code("token-1099") == await watched.code("token-100") == 401
    assert len(asked) == 1100
    assert await watched.code("token-99") == 401
    assert asked.pop() == "token-99"
    asked.clear()
    assert not [text for text in texts_of(watched.gate) if re.search(r"token-\d", text)]


def texts_of(root: object) -> Iterator[str]:
    """All texts that an object holds, directly or not."""
    left, seen = [root], set[int]()
    while left:
        each = left.pop()
        if isinstance(each, str | bytes):
            yield str(each)
        elif id(each) not in seen and not isinstance(each, type | ModuleType | FunctionType):
            seen.add(id(each))
            left.extend(gc.get_referents(each))


async def test_an_outage_is_not_remembered() -> None:
    watched = Watched()
    watched.reviews.down = True
    assert await watched.code("token-of-ann") == 401
    watched.reviews.down = False
    assert await watched.code("token-of-ann") == 200


async def test_an_agent_without_a_token_lets_no_empty_one_in() -> None:
    gate = Authorizer(ServerOptions(node_name=NODE, token=""), FakeReviews(), FakeClock())
    with pytest.raises(HttpError, match="Unauthorized"):
        await gate.authorize(RequestAttributes(method="GET", path="/logs/"))


@pytest.mark.parametrize(
    ("path", "subresources"),
    [
        ("/pods", ("pods", "proxy")),
        ("/runningpods/", ("pods", "proxy")),
        ("/healthz/ping", ("healthz", "proxy")),
        ("/configz", ("configz", "proxy")),
        ("/flagz", ("configz",)),
        ("/logs/podstatus.log", ("log",)),
        ("/logs", ("log",)),
        ("/logsome", ("proxy",)),
        ("/stats/summary", ("stats",)),
        ("/metrics/cadvisor", ("metrics",)),
        ("/checkpoint/ns/p/c", ("checkpoint",)),
        ("/statusz", ("statusz",)),
        ("/exec/ns/p/c", ("proxy",)),
        ("/containerLogs/ns/p/c", ("proxy",)),
        ("/", ("proxy",)),
    ],
)
def test_a_path_is_a_part_of_the_node(path: str, subresources: tuple[str, ...]) -> None:
    assert node_subresources(path) == subresources


def test_methods_are_verbs() -> None:
    methods = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
    assert [request_verb(method) for method in methods] == [
        "get",
        "create",
        "update",
        "patch",
        "delete",
        "get",
    ]


@pytest.mark.parametrize(
    ("certificate", "user"),
    [
        (None, None),
        ({}, None),
        ({"subject": ()}, None),
        ({"subject": ((("organizationName", "g"),),)}, None),
        ({"subject": ((("commonName", ""),),)}, None),
        (
            {
                "subject": (
                    (("organizationName", "system:masters"),),
                    (("organizationName", "b"), ("commonName", "kube")),
                )
            },
            UserInfo(username="kube", groups=("system:masters", "b", "system:authenticated")),
        ),
    ],
)
def test_a_certificate_names_the_user(
    certificate: Mapping[str, Any] | None, user: UserInfo | None
) -> None:
    assert certificate_user(certificate) == user


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", b"abc"),
        ("bearer  abc ", b"abc"),
        ("Basic abc", b""),
        ("Bearer", b""),
        ("", b""),
        ("Bearer \udcff", b"\xff"),
    ],
)
def test_a_header_holds_a_token(header: str, token: bytes) -> None:
    assert bearer_token({"Authorization": header}) == token
