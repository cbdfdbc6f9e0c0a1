"""Acquire and renew a Lease, and report when this process starts and stops leading.

Upstream: LeaderElector, client-go v0.36.4, tools/leaderelection/leaderelection.go. Differences: a
process that loses the Lease continues as a candidate, where components of Kubernetes exit; the
renew deadline counts from the start of the last successful renewal, not from the first attempt
after it.
"""

import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from podstatus.base.clock import Clock
from podstatus.base.failure_log import FailureLog
from podstatus.base.timeouts import run_with_timeout
from podstatus.client.leaderelection.decide.election_lease import (
    JITTER_FACTOR,
    ElectionConfig,
    ObservedLease,
    held_lease,
    new_lease,
    observe,
    released_lease,
)
from podstatus.kube.api_errors import ApiError, ConflictError, GoneError, UnavailableError
from podstatus.kube.objects.cluster import Lease

logger = logging.getLogger(__name__)

_SECOND = 1_000_000_000
_RELEASE_SECONDS = 1.0
"""Timeout of the release at a stop; without it, other candidates wait for the lease duration."""


class LeaseApi(Protocol):
    """Reads and writes Leases. Raises ApiError."""

    async def get_lease(self, namespace: str, name: str) -> Lease:
        """Return the Lease. Raises GoneError if it does not exist."""

    async def create_lease(self, lease: Lease) -> Lease:
        """Create the Lease and return the server's copy. Raises ConflictError if it exists."""

    async def replace_lease(self, lease: Lease) -> Lease:
        """Replace the Lease if its resource version is current; return the server's copy."""


class LeaderElector:
    """A candidate for leadership. For one event loop."""

    def __init__(
        self,
        api: LeaseApi,
        config: ElectionConfig,
        *,
        clock: Clock,
        random: Callable[[], float],
        on_started_leading: Callable[[], None],
        on_stopped_leading: Callable[[], None],
        heartbeat: Callable[[], None] = lambda: None,
    ) -> None:
        """The callbacks must not block. `heartbeat` is called with each attempt."""
        self._api = api
        self._config = config
        self._clock = clock
        self._random = random
        self._on_started_leading = on_started_leading
        self._on_stopped_leading = on_stopped_leading
        self._heartbeat = heartbeat
        self._observed: ObservedLease | None = None
        self._reported_holder = ""
        self._leads_until: int | None = None
        """Monotonic time in ns at which leadership ends unless it is renewed; None: no leader."""
        self._failures = FailureLog(
            logger, f"acquiring or renewing the lease {config.lease_name}", expected=ApiError
        )

    @property
    def is_leading(self) -> bool:
        """Whether this process leads at this moment.

        Also false between the renew deadline and `on_stopped_leading`, for example if the process
        was suspended: check it right before each action that only a leader may take.
        """
        return self._leads_until is not None and self._clock.monotonic() < self._leads_until

    @property
    def holder(self) -> str:
        """The identity of the last observed holder; empty if there is none."""
        return "" if self._observed is None else self._observed.holder

    async def run(self) -> None:
        """Acquire and renew the Lease until cancelled; then release it."""
        try:
            while True:
                self._heartbeat()
                await self.try_once()
                await self._clock.wait(self._seconds_until_next())
        finally:
            await self._release()

    async def try_once(self) -> bool:
        """Try to acquire or renew the Lease; return whether this process leads.

        Logs errors, does not raise them. Ends in time to stop leading at the renew deadline.
        """
        timeout = None
        if self._leads_until is not None:
            timeout = max(0.0, (self._leads_until - self._clock.monotonic()) / _SECOND)
        try:
            if timeout != 0.0:
                await run_with_timeout(timeout, self._clock, self._acquire_or_renew())
        except ConflictError as error:
            logger.debug("another candidate has written the lease: error=%s", error)
        except (ApiError, TimeoutError) as error:
            self._failures.failed(error)
        else:
            self._failures.recovered()
        if self._leads_until is not None and not self.is_leading:
            deadline = self._config.renew_deadline_seconds
            self._stop_leading(f"the lease was not renewed within {deadline:g} s")
        self._report_holder()
        return self.is_leading

    async def _acquire_or_renew(self) -> None:
        """Renew the Lease with one request, or read it first if that fails. Raises ApiError."""
        if self._observed is not None and self.is_leading:
            try:
                await self._hold(self._observed.lease)
            except ApiError as error:
                logger.debug("cannot renew the observed lease, reading it: error=%s", error)
            else:
                return
        try:
            lease = await self._call(self._api.get_lease(self._config.namespace, self._config.name))
        except GoneError:
            await self._create()
            return
        self._observed = observe(self._observed, lease, self._clock.monotonic())
        if self._observed.is_held_by_other(self._config.identity, self._clock.monotonic()):
            if self._leads_until is not None:
                self._stop_leading("another candidate holds the lease")
            return
        await self._hold(lease)

    async def _create(self) -> None:
        requested_at = self._clock.monotonic()
        lease = new_lease(self._config, self._clock.now())
        self._held(await self._call(self._api.create_lease(lease)), requested_at)

    async def _hold(self, lease: Lease) -> None:
        requested_at = self._clock.monotonic()
        renewed = held_lease(lease, self._config, self._clock.now())
        self._held(await self._call(self._api.replace_lease(renewed)), requested_at)

    def _held(self, lease: Lease, requested_at: int) -> None:
        """Lead from now on, for the renew deadline after the request."""
        self._observed = observe(self._observed, lease, self._clock.monotonic())
        was_leading = self._leads_until is not None
        self._leads_until = requested_at + round(self._config.renew_deadline_seconds * _SECOND)
        if not was_leading:
            logger.info("started leading: lease=%s", self._config.lease_name)
            self._on_started_leading()

    def _stop_leading(self, reason: str) -> None:
        self._leads_until = None
        logger.warning("stopped leading: lease=%s reason=%s", self._config.lease_name, reason)
        self._on_stopped_leading()

    def _report_holder(self) -> None:
        if self.holder != self._reported_holder:
            self._reported_holder = self.holder
            logger.info(
                "leader elected: lease=%s holder=%s this=%s",
                self._config.lease_name,
                self.holder,
                self._config.identity,
            )

    async def _release(self) -> None:
        """Give up the Lease if this process holds it."""
        if self._leads_until is None or self._observed is None:
            return
        self._leads_until = None
        self._on_stopped_leading()
        releasing = self._write_release(self._observed.lease)
        try:
            await run_with_timeout(_RELEASE_SECONDS, self._clock, releasing)
        except (ApiError, TimeoutError) as error:
            logger.warning(
                "cannot release the lease: lease=%s error=%s", self._config.lease_name, error
            )

    async def _write_release(self, lease: Lease) -> None:
        """Replace the Lease by one without a holder. Raises ApiError."""
        try:
            await self._api.replace_lease(released_lease(lease, self._clock.now()))
        except ConflictError:
            # A renewal that was cancelled may have succeeded at the server.
            current = await self._api.get_lease(self._config.namespace, self._config.name)
            if current.spec.holder_identity == self._config.identity:
                await self._api.replace_lease(released_lease(current, self._clock.now()))

    async def _call(self, call: Coroutine[Any, Any, Lease]) -> Lease:
        """Return the result. Raises UnavailableError after half of the renew deadline."""
        seconds = self._config.renew_deadline_seconds / 2
        try:
            return await run_with_timeout(seconds, self._clock, call)
        except TimeoutError as error:
            raise UnavailableError(f"no response within {seconds:g} s") from error

    def _seconds_until_next(self) -> float:
        period = self._config.retry_period_seconds
        if self._leads_until is None:
            return period * (1 + JITTER_FACTOR * self._random())
        left = (self._leads_until - self._clock.monotonic()) / _SECOND
        return max(0.0, min(period, left))
