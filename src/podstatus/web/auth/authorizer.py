"""Who may ask the agent what.

The token of the agent opens everything. Others are known by a certificate that the client CA has
signed, or by a token that the API server knows, and may do what the API server says they may.

Upstream: InstallAuthFilter, pkg/kubelet/server/server.go; pkg/server/options/authentication and
plugin/pkg/authorizer/webhook, apiserver v0.36.4.
"""

import asyncio
import hashlib
import hmac
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Generic, TypeVar

import msgspec

from podstatus.base.aio import boottime_ns
from podstatus.base.log_rate import LogRateLimiter
from podstatus.kube.errors import ApiError
from podstatus.kube.objects.authentication import (
    ResourceAttributes,
    SubjectAccessReviewSpec,
    TokenReviewSpec,
    UserInfo,
)
from podstatus.web.auth.attributes import subresources_of, verb_of
from podstatus.web.errors import Refusal
from podstatus.web.ports import Reviews, Wishes

logger = logging.getLogger(__name__)

T = TypeVar("T")

_MOST_ANSWERS = 1000
"""Remembered of each kind; the oldest go."""
_MOST_QUESTIONS = 8
"""To the API server at the same time: nobody makes us flood it."""
_MOST_TOKEN = 64 * 2**10
AUTHENTICATED = "system:authenticated"
OWNER = "the agent's owner"
"""Who has the agent's token."""
_WHO_SECONDS = 2.0


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks for what, as far as the connection tells."""

    method: str
    path: str
    token: bytes = b""
    certificate: UserInfo | None = None
    """Who it is by a certificate that has been verified."""

    def __repr__(self) -> str:
        return f"Asked(method={self.method!r}, path={self.path!r}, …)"


class Gate:
    """Lets those in who may; all others get a Refusal."""

    def __init__(
        self,
        wishes: Wishes,
        reviews: Reviews | None,
        monotonic: Callable[[], int] = boottime_ns,
    ) -> None:
        """`monotonic`: nanoseconds of a clock that nobody sets."""
        self._wishes = wishes
        self._token = wishes.token.encode()
        self._reviews = reviews
        self._tokens: _Answers[UserInfo | None] = _Answers(monotonic)
        self._rights: _Answers[bool] = _Answers(monotonic)
        self._questions = asyncio.Semaphore(_MOST_QUESTIONS)
        self._log_rate = LogRateLimiter(monotonic)

    async def who(self, asked: Asked) -> str:
        """Who asks, where that does not matter for what may be asked; empty if nobody knows."""
        if self.is_owner(asked):
            return OWNER
        user = asked.certificate
        if user is None:
            # An API server that hangs keeps nobody from what is open.
            with suppress(TimeoutError):
                async with asyncio.timeout(_WHO_SECONDS):
                    user = await self._owner(asked.token)
        return "" if user is None else user.username

    def is_owner(self, asked: Asked) -> bool:
        """Whether it is asked with the agent's token."""
        return bool(self._token) and hmac.compare_digest(asked.token, self._token)

    async def check(self, asked: Asked) -> str:
        """Who asks. Raises Refusal unless this may be asked by him."""
        if self.is_owner(asked):
            return OWNER
        user = asked.certificate or await self._owner(asked.token)
        if user is None:
            raise Refusal(HTTPStatus.UNAUTHORIZED, "Unauthorized")
        if self._wishes.ask_about_access and not await self._may(user, asked):
            raise _forbidden(user, asked)
        return user.username

    async def _owner(self, token: bytes) -> UserInfo | None:
        reviews = self._reviews
        if reviews is None or not self._wishes.ask_about_tokens:
            return None
        if not token or len(token) > _MOST_TOKEN or not token.isascii():
            return None
        spec = TokenReviewSpec(token=token.decode())

        async def ask() -> tuple[UserInfo | None, float]:
            found = await reviews.review_token(spec)
            return found.user if found.authenticated else None, self._wishes.token_seconds

        try:
            # What is remembered are no secrets that a core dump could give away.
            return await self._answer(self._tokens, hashlib.sha256(token).hexdigest(), ask)
        except ApiError as error:
            if self._log_rate.allow("token"):
                logger.warning("token could not be reviewed, caller is refused: error=%s", error)
            return None

    async def _may(self, user: UserInfo, asked: Asked) -> bool:
        for subresource in subresources_of(asked.path):
            if await self._has_right(user, verb_of(asked.method), subresource):
                return True
        return False

    async def _has_right(self, user: UserInfo, verb: str, subresource: str) -> bool:
        reviews, wishes = self._reviews, self._wishes
        if reviews is None:
            return False
        spec = SubjectAccessReviewSpec(
            resource_attributes=ResourceAttributes(
                verb=verb,
                version="v1",
                resource="nodes",
                subresource=subresource,
                name=wishes.node_name,
            ),
            user=user.username,
            uid=user.uid,
            groups=user.groups,
            extra=user.extra,
        )

        async def ask() -> tuple[bool, float]:
            allowed = (await reviews.review_access(spec)).allowed
            return allowed, wishes.allowed_seconds if allowed else wishes.denied_seconds

        try:
            return await self._answer(self._rights, msgspec.json.encode(spec), ask)
        except ApiError as error:
            what = f"user={user.username}, verb={verb}, resource=nodes, subresource={subresource}"
            logger.warning("authorization error: user=%s error=%s", user.username, error)
            raise Refusal(
                HTTPStatus.INTERNAL_SERVER_ERROR, f"Authorization error ({what})"
            ) from error

    async def _answer(
        self, answers: "_Answers[T]", key: object, ask: Callable[[], Awaitable[tuple[T, float]]]
    ) -> T:
        """What is remembered, or what is said when it is asked for."""
        if (known := answers.find(key)) is not None:
            return known[0]
        async with self._questions:
            # Another one may have asked the same meanwhile.
            if (known := answers.find(key)) is not None:
                return known[0]
            answer, seconds = await ask()
        answers.remember(key, answer, seconds)
        return answer


class _Answers(Generic[T]):
    """Answers, each for some time; not more than so many.

    A clock that is set back would let somebody in whose rights were taken away long ago.
    """

    def __init__(self, monotonic: Callable[[], int]) -> None:
        self._monotonic = monotonic
        self._known: OrderedDict[object, tuple[T, int]] = OrderedDict()

    def find(self, key: object) -> tuple[T] | None:
        known = self._known.get(key)
        if known is None or known[1] <= self._monotonic():
            return None
        return (known[0],)

    def remember(self, key: object, answer: T, seconds: float) -> None:
        self._known.pop(key, None)
        self._known[key] = (answer, self._monotonic() + round(seconds * 1e9))
        while len(self._known) > _MOST_ANSWERS:
            self._known.popitem(last=False)


def _forbidden(user: UserInfo, asked: Asked) -> Refusal:
    subresources = " ".join(subresources_of(asked.path))
    return Refusal(
        HTTPStatus.FORBIDDEN,
        f"Forbidden (user={user.username}, verb={verb_of(asked.method)}, resource=nodes, "
        f"subresource(s)=[{subresources}])\n",
    )


def bearer_token(headers: Mapping[str, str]) -> bytes:
    """What a client gives as its token; headers can hold any bytes."""
    scheme, _, token = headers.get("Authorization", "").strip().partition(" ")
    return token.strip().encode(errors="surrogateescape") if scheme.lower() == "bearer" else b""


def certificate_user(certificate: Mapping[str, Any] | None) -> UserInfo | None:
    """Who a verified certificate says that it is; `None` if there is none, or it has no name.

    Upstream: CommonNameUserConversion, apiserver/pkg/authentication/request/x509/x509.go v0.36.4.
    """
    subject = [pair for group in (certificate or {}).get("subject", ()) for pair in group]
    names = [value for name, value in subject if name == "commonName"]
    groups = [value for name, value in subject if name == "organizationName"]
    if not names or not names[-1]:
        return None
    return UserInfo(username=names[-1], groups=(*groups, AUTHENTICATED))
