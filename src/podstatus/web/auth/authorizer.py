"""Authenticate and authorize requests to the agent.

The agent's token authorizes everything. Other clients authenticate with a certificate signed by the
client CA, or with a token that the API server reviews; the API server authorizes them.

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

from podstatus.base.clock import Clock
from podstatus.base.log_rate import LogRateLimiter
from podstatus.kube.api_errors import ApiError
from podstatus.kube.objects.authentication import (
    ResourceAttributes,
    SubjectAccessReviewSpec,
    TokenReviewSpec,
    UserInfo,
)
from podstatus.web.errors import HttpError
from podstatus.web.ports import ReviewClient, ServerOptions

logger = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_CACHED_DECISIONS = 1000
"""Of each cache; the oldest entries are evicted."""
_MAX_REVIEWS_IN_FLIGHT = 8
"""Concurrent reviews, so that clients cannot make the agent flood the API server."""
_MAX_TOKEN_BYTES = 64 * 2**10
AUTHENTICATED = "system:authenticated"
AGENT_USER = "the agent's owner"
"""User name of clients with the agent's token."""
_IDENTIFY_TIMEOUT_SECONDS = 2.0
# Differs from upstream, which has no verb for HEAD and so denies it to all but cluster admins.
_VERBS = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_EXCLUSIVE_SUBRESOURCES = {
    "stats": "stats",
    "metrics": "metrics",
    "logs": "log",
    "checkpoint": "checkpoint",
    "statusz": "statusz",
}
"""Subresources that the right to `nodes/proxy` does not cover."""
_PROXY_COVERED_SUBRESOURCES = {
    "pods": "pods",
    "runningpods": "pods",
    "healthz": "healthz",
    "configz": "configz",
    "v1": "pods",
    "openapi": "pods",
    "openapi.json": "pods",
}
"""Subresources with a right of their own; `nodes/proxy` covers them, too.

The query API needs the right of `/pods`: it shows the same pods, with less of their specs.
"""


class RequestAttributes(msgspec.Struct, frozen=True, kw_only=True):
    """Method, path and credentials of a request."""

    method: str
    path: str
    token: bytes = b""
    certificate: UserInfo | None = None
    """The user of a verified client certificate."""

    def __repr__(self) -> str:
        return f"RequestAttributes(method={self.method!r}, path={self.path!r}, …)"


class Authorizer:
    """Authenticates and authorizes requests; caches reviews. For one event loop."""

    def __init__(
        self,
        options: ServerOptions,
        reviews: ReviewClient,
        clock: Clock,
    ) -> None:
        self._options = options
        self._token = options.token.encode()
        self._reviews = reviews
        self._token_cache: _DecisionCache[UserInfo | None] = _DecisionCache(clock)
        self._access_cache: _DecisionCache[bool] = _DecisionCache(clock)
        self._reviews_in_flight = asyncio.Semaphore(_MAX_REVIEWS_IN_FLIGHT)
        self._log_rate = LogRateLimiter(clock)

    async def identify(self, attributes: RequestAttributes) -> str:
        """The user name, for a request that needs no authorization; empty if it is unknown.

        Waits at most 2 s for a token review.
        """
        if self.has_agent_token(attributes):
            return AGENT_USER
        user = attributes.certificate
        if user is None:
            # A hanging API server must not block what needs no credentials.
            with suppress(TimeoutError):
                async with asyncio.timeout(_IDENTIFY_TIMEOUT_SECONDS):
                    user = await self._review_token(attributes.token)
        return "" if user is None else user.username

    def has_agent_token(self, attributes: RequestAttributes) -> bool:
        """Whether the request has the agent's token. Compares in constant time."""
        return bool(self._token) and hmac.compare_digest(attributes.token, self._token)

    async def authorize(self, attributes: RequestAttributes) -> str:
        """The user name. Raises HttpError: 401 or 403, or 500 if authorization fails."""
        if self.has_agent_token(attributes):
            return AGENT_USER
        user = attributes.certificate or await self._review_token(attributes.token)
        if user is None:
            raise HttpError(HTTPStatus.UNAUTHORIZED, "Unauthorized")
        if self._options.authorization_webhook and not await self._is_allowed(user, attributes):
            raise _forbidden(user, attributes)
        return user.username

    async def _review_token(self, token: bytes) -> UserInfo | None:
        if not self._options.token_webhook:
            return None
        if not token or len(token) > _MAX_TOKEN_BYTES or not token.isascii():
            return None
        spec = TokenReviewSpec(token=token.decode())

        async def review() -> tuple[UserInfo | None, float]:
            status = await self._reviews.review_token(spec)
            return status.user if status.authenticated else None, self._options.token_cache_seconds

        try:
            # The key is a hash, so that no core dump of the cache reveals a token.
            return await self._cached_or_review(
                self._token_cache, hashlib.sha256(token).hexdigest(), review
            )
        except ApiError as error:
            if self._log_rate.allow("token"):
                logger.warning("token review failed, request rejected: error=%s", error)
            return None

    async def _is_allowed(self, user: UserInfo, attributes: RequestAttributes) -> bool:
        for subresource in node_subresources(attributes.path):
            if await self._review_access(user, request_verb(attributes.method), subresource):
                return True
        return False

    async def _review_access(self, user: UserInfo, verb: str, subresource: str) -> bool:
        options = self._options
        spec = SubjectAccessReviewSpec(
            resource_attributes=ResourceAttributes(
                verb=verb,
                version="v1",
                resource="nodes",
                subresource=subresource,
                name=options.node_name,
            ),
            user=user.username,
            uid=user.uid,
            groups=user.groups,
            extra=user.extra,
        )

        async def review() -> tuple[bool, float]:
            if (await self._reviews.review_access(spec)).allowed:
                return True, options.allowed_cache_seconds
            return False, options.denied_cache_seconds

        key = msgspec.json.encode(spec)
        try:
            return await self._cached_or_review(self._access_cache, key, review)
        except ApiError as error:
            what = f"user={user.username}, verb={verb}, resource=nodes, subresource={subresource}"
            logger.warning(
                "access review failed, request rejected: user=%s error=%s", user.username, error
            )
            raise HttpError(
                HTTPStatus.INTERNAL_SERVER_ERROR, f"Authorization error ({what})"
            ) from error

    async def _cached_or_review(
        self,
        cache: "_DecisionCache[T]",
        key: object,
        review: Callable[[], Awaitable[tuple[T, float]]],
    ) -> T:
        """The cached decision, or that of a review, which also returns how long to cache it."""
        if (entry := cache.get(key)) is not None:
            return entry[0]
        async with self._reviews_in_flight:
            # Another request may have got the same decision meanwhile.
            if (entry := cache.get(key)) is not None:
                return entry[0]
            decision, seconds = await review()
        cache.put(key, decision, seconds)
        return decision


class _DecisionCache(Generic[T]):
    """Decisions with an expiry, at most `_MAX_CACHED_DECISIONS`.

    Expiry uses the monotonic clock: a wall clock that is set back would extend revoked rights.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: OrderedDict[object, tuple[T, int]] = OrderedDict()

    def get(self, key: object) -> tuple[T] | None:
        entry = self._entries.get(key)
        if entry is None or entry[1] <= self._clock.monotonic():
            return None
        return (entry[0],)

    def put(self, key: object, decision: T, seconds: float) -> None:
        self._entries.pop(key, None)
        self._entries[key] = (decision, self._clock.monotonic() + round(seconds * 1e9))
        while len(self._entries) > _MAX_CACHED_DECISIONS:
            self._entries.popitem(last=False)


def _forbidden(user: UserInfo, attributes: RequestAttributes) -> HttpError:
    subresources = " ".join(node_subresources(attributes.path))
    return HttpError(
        HTTPStatus.FORBIDDEN,
        f"Forbidden (user={user.username}, verb={request_verb(attributes.method)}, "
        "resource=nodes, "
        f"subresource(s)=[{subresources}])\n",
    )


def request_verb(method: str) -> str:
    """The verb of a method; empty for one that has none."""
    return _VERBS.get(method, "")


def node_subresources(path: str) -> tuple[str, ...]:
    """The subresources of the Node for a path; the right to any of them is sufficient.

    Upstream: GetRequestAttributes, pkg/kubelet/server/auth.go v1.36.4.
    """
    root = path.removeprefix("/").partition("/")[0]
    if root == "flagz":
        return ("configz",)
    if root in _EXCLUSIVE_SUBRESOURCES:
        return (_EXCLUSIVE_SUBRESOURCES[root],)
    if root in _PROXY_COVERED_SUBRESOURCES:
        return _PROXY_COVERED_SUBRESOURCES[root], "proxy"
    return ("proxy",)


def bearer_token(headers: Mapping[str, str]) -> bytes:
    """The bearer token of the Authorization header, as raw bytes; empty if there is none."""
    scheme, _, token = headers.get("Authorization", "").strip().partition(" ")
    return token.strip().encode(errors="surrogateescape") if scheme.lower() == "bearer" else b""


def certificate_user(certificate: Mapping[str, Any] | None) -> UserInfo | None:
    """The user of a verified client certificate; None without one, or without a common name.

    Upstream: CommonNameUserConversion, apiserver/pkg/authentication/request/x509/x509.go v0.36.4.
    """
    subject = [pair for group in (certificate or {}).get("subject", ()) for pair in group]
    names = [value for name, value in subject if name == "commonName"]
    groups = [value for name, value in subject if name == "organizationName"]
    if not names or not names[-1]:
        return None
    return UserInfo(username=names[-1], groups=(*groups, AUTHENTICATED))
