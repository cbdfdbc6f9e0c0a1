"""Renew the node lease.

Upstream: component-helpers v0.36.4, apimachinery/lease/controller.go; SetNodeOwnerFunc,
util/nodelease.go v1.36.4.
"""

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import structs

from podstatus.base.backoff import Backoff
from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.kube.api_errors import (
    ApiError,
    BusyError,
    ConflictError,
    GoneError,
    UnavailableError,
)
from podstatus.kube.objects.cluster import Lease, LeaseSpec
from podstatus.kube.objects.meta import ObjectMeta, OwnerReference
from podstatus.kube.scalars.time import MicroTime
from podstatus.node.deadline import call_with_timeout
from podstatus.node.ports import NodeApi

logger = logging.getLogger(__name__)

LEASE_NAMESPACE = "kube-node-lease"

_MAX_ATTEMPTS = 5
_JITTER = 0.04
"""Maximum random extension of the period, as a fraction, so that nodes do not synchronize."""
_CALL_SECONDS = 5.0
"""Timeout per call. Even if two calls hang, a 40 s lease is renewed in time."""
_MAX_RETRY_AFTER_SECONDS = 1.0
"""Upper bound for a Retry-After of the server."""
_NODE_POLL_SECONDS = 0.5
"""Poll interval while the Node is not registered."""


class LeaseService:
    """Renews the node lease every quarter of its duration."""

    def __init__(
        self,
        api: NodeApi,
        node: str,
        *,
        clock: Clock,
        node_uid: Callable[[], str],
        duration: int,
        on_recovered: Callable[[], None],
        random: Callable[[], float],
        heartbeat: Callable[[], None],
    ) -> None:
        """`node_uid` returns an empty string until the Node is registered. `on_recovered` is called
        after an outage that was longer than the lease duration."""
        self._api = api
        self._node = node
        self._clock = clock
        self._node_uid = node_uid
        self._duration = duration
        self._on_recovered = on_recovered
        self._random = random
        self._heartbeat = heartbeat
        self._latest: Lease | None = None
        self._failure_log = FailureLog(logger, "renewing the node lease")
        self._renewed_at: int | None = None

    async def run(self) -> None:
        """Renew the lease until cancelled."""
        period = self._duration / 4
        while True:
            started = self._clock.monotonic()
            await self.renew_once()
            # The period counts from start to start, so slow responses do not delay renewals.
            wait = period * (1 + _JITTER * self._random()) - self._seconds_since(started)
            await self._clock.wait(max(0.0, wait))

    @property
    def age_seconds(self) -> float | None:
        """Seconds since the last renewal; None before the first one."""
        if self._renewed_at is None:
            return None
        return self._seconds_since(self._renewed_at)

    def _seconds_since(self, monotonic: int) -> float:
        return (self._clock.monotonic() - monotonic) / 1e9

    async def renew_once(self) -> bool:
        """Renew or create the lease. Return whether it succeeded.

        Retries with a back-off while the server is unavailable.
        """
        # This agent is the only writer, so its last version is current: no read before the update.
        if await self._renew() or await self._ensure_lease() or await self._renew():
            self._record_success()
            return True
        return False

    def _record_success(self) -> None:
        age = self.age_seconds
        self._renewed_at = self._clock.monotonic()
        self._failure_log.recovered()
        if age is not None and age > self._duration:
            logger.info("node lease renewed after an outage: seconds=%.0f", age)
            self._on_recovered()

    async def _renew(self) -> bool:
        """Renew the cached lease, in a few quick attempts. Return whether it succeeded."""
        for _ in range(_MAX_ATTEMPTS):
            self._heartbeat()
            if self._latest is None:
                return False
            try:
                self._latest = await self._call_with_timeout(
                    self._api.replace_lease(self._with_renewal(self._latest))
                )
            except ApiError as error:
                self._failure_log.failed(error)
                await self._prepare_retry(error)
            else:
                return True
        self._latest = None
        return False

    async def _prepare_retry(self, error: ApiError) -> None:
        """Wait, or drop the cached lease, depending on the error."""
        if isinstance(error, BusyError):
            # Respect Retry-After up to a bound: the lease must not expire meanwhile.
            await self._clock.wait(min(error.retry_after or 0.2, _MAX_RETRY_AFTER_SECONDS))
        elif not isinstance(error, UnavailableError):
            # The cached lease is outdated, or was deleted.
            self._latest = None
            if isinstance(error, ConflictError):
                await self._ensure_lease()

    async def _ensure_lease(self) -> bool:
        """Read or create the lease. Return whether it was created and so needs no renewal.

        Retries forever, with an exponential back-off.
        """
        backoff = Backoff(initial_seconds=0.2, max_seconds=7.0, jitter=0.1)
        while True:
            self._heartbeat()
            try:
                created = await self._read_or_create()
            except ApiError as error:
                self._failure_log.failed(error)
                backoff = backoff.failed()
                await self._clock.wait(backoff.delay(self._random()))
                continue
            if created is not None:
                return created
            await self._clock.wait(_NODE_POLL_SECONDS)

    async def _read_or_create(self) -> bool | None:
        """Whether the lease was created; None if neither it nor its owner Node exists."""
        try:
            self._latest = await self._call_with_timeout(
                self._api.get_lease(LEASE_NAMESPACE, self._node)
            )
        except GoneError:
            if not self._node_uid():
                # Without an owner Node the lease would never be garbage-collected.
                return None
            self._latest = await self._call_with_timeout(self._api.create_lease(self._new_lease()))
            return True
        return False

    async def _call_with_timeout(self, call: Coroutine[Any, Any, Lease]) -> Lease:
        return await call_with_timeout(self._clock, _CALL_SECONDS, call)

    def _new_lease(self) -> Lease:
        bare = Lease(
            kind="Lease",
            api_version="coordination.k8s.io/v1",
            metadata=ObjectMeta(name=self._node, namespace=LEASE_NAMESPACE),
            spec=LeaseSpec(holder_identity=self._node),
        )
        return self._with_renewal(bare)

    def _with_renewal(self, lease: Lease) -> Lease:
        spec = structs.replace(
            lease.spec,
            lease_duration_seconds=self._duration,
            renew_time=MicroTime.from_unix_nanos(self._clock.now()),
        )
        owners = self._with_node_owner(lease.metadata.owner_references or ())
        # Set the names again: a response without them would break every later update.
        metadata = structs.replace(
            lease.metadata, name=self._node, namespace=LEASE_NAMESPACE, owner_references=owners
        )
        return structs.replace(lease, metadata=metadata, spec=spec)

    def _with_node_owner(
        self, owners: tuple[OwnerReference, ...]
    ) -> tuple[OwnerReference, ...] | None:
        """Owners with the current Node UID: the Node may have been registered again."""
        uid = self._node_uid()
        stale = [it for it in owners if it.kind == "Node" and it.name == self._node]
        if not uid or (owners and not stale):
            return owners or None
        node = OwnerReference(api_version="v1", kind="Node", name=self._node, uid=uid)
        return node, *(it for it in owners if it not in stale)
