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
from podstatus.web.auth.attributes import node_subresources, request_verb
from podstatus.web.errors import HttpError
from podstatus.web.ports import ReviewClient, ServerOptions

logger = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_CACHED_DECISIONS = 1000
"""Remembered of each kind; the oldest go."""
_MAX_REVIEWS_IN_FLIGHT = 8
"""To the API server at the same time: nobody makes us flood it."""
_MAX_TOKEN_BYTES = 64 * 2**10
AUTHENTICATED = "system:authenticated"
AGENT_USER = "the agent's owner"
"""Who has the agent's token."""
_IDENTIFY_TIMEOUT_SECONDS = 2.0


class RequestAttributes(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks for what, as far as the connection tells."""

    method: str
    path: str
    token: bytes = b""
    certificate: UserInfo | None = None
    """Who it is by a certificate that has been verified."""

    def __repr__(self) -> str:
        return f"Asked(method={self.method!r}, path={self.path!r}, …)"


class Authorizer:
    """Lets those in who may; all others get a Refusal."""

    def __init__(
        self,
        options: ServerOptions,
        reviews: ReviewClient | None,
        monotonic: Callable[[], int] = boottime_ns,
    ) -> None:
        """`monotonic`: nanoseconds of a clock that nobody sets."""
        self._options = options
        self._token = options.token.encode()
        self._reviews = reviews
        self._token_cache: _DecisionCache[UserInfo | None] = _DecisionCache(monotonic)
        self._access_cache: _DecisionCache[bool] = _DecisionCache(monotonic)
        self._reviews_in_flight = asyncio.Semaphore(_MAX_REVIEWS_IN_FLIGHT)
        self._log_rate = LogRateLimiter(monotonic)

    async def identify(self, attributes: RequestAttributes) -> str:
        """Who asks, where that does not matter for what may be asked; empty if nobody knows."""
        if self.has_agent_token(attributes):
            return AGENT_USER
        user = attributes.certificate
        if user is None:
            # An API server that hangs keeps nobody from what is open.
            with suppress(TimeoutError):
                async with asyncio.timeout(_IDENTIFY_TIMEOUT_SECONDS):
                    user = await self._review_token(attributes.token)
        return "" if user is None else user.username

    def has_agent_token(self, attributes: RequestAttributes) -> bool:
        """Whether it is asked with the agent's token."""
        return bool(self._token) and hmac.compare_digest(attributes.token, self._token)

    async def authorize(self, attributes: RequestAttributes) -> str:
        """Who asks. Raises Refusal unless this may be asked by him."""
        if self.has_agent_token(attributes):
            return AGENT_USER
        user = attributes.certificate or await self._review_token(attributes.token)
        if user is None:
            raise HttpError(HTTPStatus.UNAUTHORIZED, "Unauthorized")
        if self._options.authorization_webhook and not await self._is_allowed(user, attributes):
            raise _forbidden(user, attributes)
        return user.username

    async def _review_token(self, token: bytes) -> UserInfo | None:
        reviews = self._reviews
        if reviews is None or not self._options.token_webhook:
            return None
        if not token or len(token) > _MAX_TOKEN_BYTES or not token.isascii():
            return None
        spec = TokenReviewSpec(token=token.decode())

        async def ask() -> tuple[UserInfo | None, float]:
            found = await reviews.review_token(spec)
            return found.user if found.authenticated else None, self._options.token_cache_seconds

        try:
            # What is remembered are no secrets that a core dump could give away.
            return await self._cached_or_review(
                self._token_cache, hashlib.sha256(token).hexdigest(), ask
            )
        except ApiError as error:
            if self._log_rate.allow("token"):
                logger.warning("token could not be reviewed, caller is refused: error=%s", error)
            return None

    async def _is_allowed(self, user: UserInfo, asked: RequestAttributes) -> bool:
        for subresource in node_subresources(asked.path):
            if await self._review_access(user, request_verb(asked.method), subresource):
                return True
        return False

    async def _review_access(self, user: UserInfo, verb: str, subresource: str) -> bool:
        reviews, wishes = self._reviews, self._options
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
            return allowed, wishes.allowed_cache_seconds if allowed else wishes.denied_cache_seconds

        try:
            return await self._cached_or_review(self._access_cache, msgspec.json.encode(spec), ask)
        except ApiError as error:
            what = f"user={user.username}, verb={verb}, resource=nodes, subresource={subresource}"
            logger.warning("authorization error: user=%s error=%s", user.username, error)
            raise HttpError(
                HTTPStatus.INTERNAL_SERVER_ERROR, f"Authorization error ({what})"
            ) from error

    async def _cached_or_review(
        self,
        answers: "_DecisionCache[T]",
        key: object,
        ask: Callable[[], Awaitable[tuple[T, float]]],
    ) -> T:
        """What is remembered, or what is said when it is asked for."""
        if (known := answers.get(key)) is not None:
            return known[0]
        async with self._reviews_in_flight:
            # Another one may have asked the same meanwhile.
            if (known := answers.get(key)) is not None:
                return known[0]
            answer, seconds = await ask()
        answers.put(key, answer, seconds)
        return answer


class _DecisionCache(Generic[T]):
    """Answers, each for some time; not more than so many.

    A clock that is set back would let somebody in whose rights were taken away long ago.
    """

    def __init__(self, monotonic: Callable[[], int]) -> None:
        self._monotonic = monotonic
        self._entries: OrderedDict[object, tuple[T, int]] = OrderedDict()

    def get(self, key: object) -> tuple[T] | None:
        known = self._entries.get(key)
        if known is None or known[1] <= self._monotonic():
            return None
        return (known[0],)

    def put(self, key: object, answer: T, seconds: float) -> None:
        self._entries.pop(key, None)
        self._entries[key] = (answer, self._monotonic() + round(seconds * 1e9))
        while len(self._entries) > _MAX_CACHED_DECISIONS:
            self._entries.popitem(last=False)


def _forbidden(user: UserInfo, asked: RequestAttributes) -> HttpError:
    subresources = " ".join(node_subresources(asked.path))
    return HttpError(
        HTTPStatus.FORBIDDEN,
        f"Forbidden (user={user.username}, verb={request_verb(asked.method)}, resource=nodes, "
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
