"""Questions to an API server about others."""

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the client needs podstatus[agent]")

from podstatus.client.api_client import ApiClient
from podstatus.client.typed.reviews import HttpReviews
from podstatus.kube.api_errors import ApiError, DeniedError, RejectedError
from podstatus.kube.objects.authentication import (
    ResourceAttributes,
    SubjectAccessReviewSpec,
    TokenReviewSpec,
    UserInfo,
)
from tests.client.raw_server import answer, raw_server
from tests.support.plain_access import PlainAccess


async def asked(
    question: str, body: bytes, code: str = "201 Created"
) -> tuple[Any, dict[str, Any]]:
    """Return the result for this response of the server, and the request that was sent."""
    sent: dict[str, Any] = {}

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        sent["path"] = head.split()[1]
        length = head.lower().partition("content-length: ")[2].split()[0]
        sent["body"] = json.loads(await reader.readexactly(int(length)))
        writer.write(answer(body, code, "Content-Type: application/json"))

    async with raw_server(say, greets=True) as url, ApiClient(PlainAccess(url)) as client:
        reviews = HttpReviews(client)
        if question == "token":
            return await reviews.review_token(TokenReviewSpec(token="t")), sent  # noqa: S106
        about = ResourceAttributes(verb="get", resource="nodes", subresource="log", name="n")
        spec = SubjectAccessReviewSpec(resource_attributes=about, user="ann", groups=("g",))
        return await reviews.review_access(spec), sent


async def test_whose_a_token_is() -> None:
    status_document = {
        "authenticated": True,
        "user": {"username": "ann", "groups": ["g"], "extra": {"k": ["v"]}},
    }
    status, sent = await asked("token", json.dumps({"status": status_document}).encode())
    assert status.authenticated
    assert status.user == UserInfo(username="ann", groups=("g",), extra={"k": ("v",)})
    assert sent["path"] == "/apis/authentication.k8s.io/v1/tokenreviews"
    assert sent["body"]["kind"] == "TokenReview"
    assert sent["body"]["spec"] == {"token": "t"}


@pytest.mark.parametrize("allowed", [True, False])
async def test_review_access(allowed: bool) -> None:
    status, sent = await asked("access", json.dumps({"status": {"allowed": allowed}}).encode())
    assert status.allowed is allowed
    assert sent["path"] == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert sent["body"]["spec"] == {
        "user": "ann",
        "groups": ["g"],
        "resourceAttributes": {
            "verb": "get",
            "resource": "nodes",
            "subresource": "log",
            "name": "n",
        },
    }


async def test_an_answer_without_a_status_allows_nothing() -> None:
    assert not (await asked("access", b"{}"))[0].allowed
    assert not (await asked("token", b"{}"))[0].authenticated


@pytest.mark.parametrize("question", ["token", "access"])
@pytest.mark.parametrize(
    ("body", "code", "error"),
    [(b"[]", "201 Created", RejectedError), (b"{}", "403 Forbidden", DeniedError)],
)
async def test_what_goes_wrong_is_an_api_error(
    question: str, body: bytes, code: str, error: type[ApiError]
) -> None:
    with pytest.raises(error):
        await asked(question, body, code)


def test_a_token_is_not_shown() -> None:
    assert "secret" not in repr(TokenReviewSpec(token="secret"))  # noqa: S106
