"""Metrics over HTTPS: authorization, formats, and pages that are missing."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.observe.metrics.exposition import MetricPages
from podstatus.observe.metrics.model import Samples, gauge, single
from tests.support.web.node_server import Scene, play

PATHS = ("/metrics", "/metrics/resource", "/metrics/probes", "/metrics/slis")


def page(number: int) -> list[Samples]:
    """A collector whose metric is named after its page."""
    return [single(gauge("page", "Which one."), number)]


def with_pages(scene: Scene) -> None:
    """Set up a page for each path."""
    names = ("", "resource", "probes", "slis")
    pages = MetricPages({name: partial(page, number) for number, name in enumerate(names)})
    scene.answers._dependencies = structs.replace(scene.sources, metrics=pages)


@pytest.mark.parametrize(("number", "path"), list(enumerate(PATHS)))
def test_a_page_is_answered_as_text(tmp_path: Path, number: int, path: str) -> None:
    async def act(scene: Scene) -> tuple[int, str, str, dict[str, str]]:
        with_pages(scene)
        async with scene.client() as session, session.get(path) as answer:
            kind = answer.headers["Content-Type"]
            return answer.status, kind, await answer.text(), dict(answer.headers)

    code, kind, text, headers = play(tmp_path, act)
    assert (code, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert text.splitlines()[-1] == f"page {number}.0"
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_openmetrics_is_negotiated(tmp_path: Path) -> None:
    async def act(scene: Scene) -> tuple[str, str]:
        with_pages(scene)
        accept = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}
        async with scene.client() as session, session.get("/metrics", headers=accept) as answer:
            return answer.headers["Content-Type"], await answer.text()

    kind, text = play(tmp_path, act)
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
def test_the_right_to_metrics_is_needed_and_that_to_the_node_is_not_enough(
    tmp_path: Path, path: str, token: str, right: str, code: int
) -> None:
    async def act(scene: Scene) -> tuple[int, str]:
        with_pages(scene)
        scene.reviews.rights.add(("bob", "get", right))
        return await scene.get(path, token)

    answered, _ = play(tmp_path, act, token_webhook=True, authorization_webhook=True)
    assert answered == code


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_metrics_are_only_read(tmp_path: Path, method: str) -> None:
    async def act(scene: Scene) -> int:
        with_pages(scene)
        async with scene.client() as session, session.request(method, "/metrics") as answer:
            return answer.status

    assert play(tmp_path, act) == 405


def test_cadvisor_metrics_need_measured_containers(tmp_path: Path) -> None:
    async def act(scene: Scene) -> tuple[int, str]:
        with_pages(scene)
        return await scene.get("/metrics/cadvisor")

    code, text = play(tmp_path, act)
    assert code == 404
    assert "/metrics/resource" in text


def test_a_page_that_breaks_is_an_error_and_the_port_goes_on(tmp_path: Path) -> None:
    def broken() -> None:
        raise RuntimeError("broken")

    async def act(scene: Scene) -> list[int]:
        pages = MetricPages({"": broken})
        scene.answers._dependencies = structs.replace(scene.sources, metrics=pages)
        answered = [(await scene.get(path))[0] for path in ("/metrics", "/healthz")]
        pages.close()
        return answered

    assert play(tmp_path, act) == [500, 200]


def test_many_concurrent_requests_are_served(tmp_path: Path) -> None:
    async def act(scene: Scene) -> set[int]:
        with_pages(scene)
        answers = await asyncio.gather(*(scene.get("/metrics") for _ in range(20)))
        return {code for code, _ in answers}

    assert play(tmp_path, act) == {200}


def test_a_node_without_metrics_has_none(tmp_path: Path) -> None:
    assert play(tmp_path, lambda scene: scene.get("/metrics"))[0] == 404
