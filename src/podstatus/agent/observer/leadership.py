"""The election of the observer that notifies: a Lease, and the delivery that follows it."""

import platform
import random
import uuid
from typing import Protocol

from podstatus.agent.observer.settings import ObserverSettings
from podstatus.base.clock import Clock
from podstatus.base.service_heartbeats import Heartbeats
from podstatus.client import ApiClient, HttpNodeApi, Timeouts
from podstatus.client.auth.config import ClientConfig
from podstatus.client.leaderelection.decide.election_lease import ElectionConfig
from podstatus.client.leaderelection.elector import LeaderElector


class LeaderDelivery(Protocol):
    """What notifies while this process leads."""

    def stand_by(self) -> None:
        """Another process notifies from now on: end what is in flight."""

    def take_over(self) -> None:
        """Notify from now on, starting with what the former leader may not have sent."""


class Leadership:
    """This observer as a candidate, with a connection of its own: lists must not delay renewals."""

    def __init__(
        self, settings: ObserverSettings, access: ClientConfig, heartbeats: Heartbeats, clock: Clock
    ) -> None:
        self._delivery: LeaderDelivery | None = None
        self.lease_name = settings.leader_elect_resource_name
        self._client = ApiClient(
            access,
            user_agent="podstatus/leader-election",
            timeouts=Timeouts(total_seconds=settings.leader_elect_renew_deadline / 2),
        )
        self._elector = LeaderElector(
            HttpNodeApi(self._client),
            election_config(settings),
            clock=clock,
            random=random.random,
            on_started_leading=self._started,
            on_stopped_leading=self._stopped,
            heartbeat=heartbeats.register("leader-election", max_silent_seconds=60, is_vital=False),
        )

    @property
    def is_leading(self) -> bool:
        """Whether this observer may notify at this moment."""
        return self._elector.is_leading

    def connect(self, delivery: LeaderDelivery) -> None:
        """Set what follows the leadership; it begins on standby."""
        self._delivery = delivery

    async def run(self) -> None:
        """Take part in the election until cancelled; then release the Lease."""
        async with self._client:
            await self._elector.run()

    def _started(self) -> None:
        if self._delivery is not None:
            self._delivery.take_over()

    def _stopped(self) -> None:
        if self._delivery is not None:
            self._delivery.stand_by()


def election_config(settings: ObserverSettings) -> ElectionConfig:
    """Return the config of a new candidate, with an identity as components of Kubernetes have."""
    return ElectionConfig(
        identity=f"{platform.node()}_{uuid.uuid4()}",
        namespace=settings.leader_elect_resource_namespace,
        name=settings.leader_elect_resource_name,
        lease_duration_seconds=round(settings.leader_elect_lease_duration),
        renew_deadline_seconds=settings.leader_elect_renew_deadline,
        retry_period_seconds=settings.leader_elect_retry_period,
    )
