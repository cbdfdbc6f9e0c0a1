"""Metrics over HTTPS: authorization, formats, and pages that are missing."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from podstatus.observe.metrics.model import Samples, gauge, single
from tests.support.web.node_server import Scene, serve

PATHS = ("/metrics", "/metrics/resource", "/metrics/probes", "/metrics/slis")


def page(number: int) -> list[Samples]:
    """A collector whose metric is named after its page."""
    return [single(gauge("page", "Which one."), number)]


def with_pages(scene: Scene) -> None:
    """Set up a page for each path."""
    names = ("", "resource", "probes", "slis")
    scene.pages.update({name: partial(page, number) for number, name in enumerate(names)})


@pytest.mark.parametrize(("number", "path"), list(enumerate(PATHS)))
async def test_a_page_is_answered_as_text(scene: Scene, number: int, path: str) -> None:
    with_pages(scene)
    async with scene.client() as session, session.get(path) as answer:
        text = await answer.text()
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert text.splitlines()[-1] == f"page {number}.0"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_openmetrics_is_negotiated(scene: Scene) -> None:
    with_pages(scene)
    accept = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}
    async with scene.client() as session, session.get("/metrics", headers=accept) as answer:
        kind, text = answer.headers["Content-Type"], await answer.text()
    assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert text.endswith("# EOF\n")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("token", "right", "code"),
    [
        ("", "metrics", 401),
        ("unknown", "metrics", 401),
        ("token-of-bob", "proxy", 403),
        ("token-of-bob", "metrics", 200),
    ],
)
async def test_the_right_to_metrics_is_needed_and_that_to_the_node_is_not_enough(
    tmp_path: Path, path: str, token: str, right: str, code: int
) -> None:
    async with serve(tmp_path, token_webhook=True, authorization_webhook=True) as scene:
        with_pages(scene)
        scene.reviews.rights.add(("bob", "get", right))
        answered, _ = await scene.get(path, token)
    assert answered == code


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_metrics_are_only_read(scene: Scene, method: str) -> None:
    with_pages(scene)
    async with scene.client() as session, session.request(method, "/metrics") as answer:
        assert answer.status == 405


async def test_cadvisor_metrics_need_measured_containers(scene: Scene) -> None:
    with_pages(scene)
    code, text = await scene.get("/metrics/cadvisor")
    assert code == 404
    assert "/metrics/resource" in text


async def test_a_page_that_breaks_is_an_error_and_the_port_goes_on(scene: Scene) -> None:
    def broken() -> None:
        raise RuntimeError("broken")

    scene.pages[""] = broken
    answered = [(await scene.get(path))[0] for path in ("/metrics", "/healthz")]
    assert answered == [500, 200]


async def test_many_concurrent_requests_are_served(scene: Scene) -> None:
    with_pages(scene)
    answers = await asyncio.gather(*(scene.get("/metrics") for _ in range(20)))
    assert {code for code, _ in answers} == {200}


async def test_a_node_without_metrics_has_none(scene: Scene) -> None:
    assert (await scene.get("/metrics"))[0] == 404
