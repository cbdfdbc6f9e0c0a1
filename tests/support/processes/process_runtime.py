"""What tests of the process runtime need of the machine, and a runtime as an agent has it."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs

from podstatus.base.clock import Clock
from podstatus.base.system_clock import SystemClock
from podstatus.kube.api_errors import GoneError
from podstatus.kube.objects.authentication import TokenRequestStatus
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.process.cgroups.enforcer import OnUnlimited
from podstatus.runtime.process.cgroups.pod_cgroups import Cgroups, unavailable_cgroups
from podstatus.runtime.process.launch_preparer import ContainerPreparer
from podstatus.runtime.process.process_runtime import ProcessRuntime
from podstatus.runtime.process.records.launch import LogLimits
from podstatus.runtime.process.sandbox.isolation import (
    Bubblewrap,
    BubblewrapUnavailableError,
    find_bubblewrap,
)
from podstatus.runtime.process.service_links import NoServices


def _bubblewrap() -> tuple[Bubblewrap | None, str]:
    try:
        return find_bubblewrap(), ""
    except BubblewrapUnavailableError as error:
        return None, str(error)


BUBBLEWRAP, _WHY_NOT = _bubblewrap()
need_bubblewrap = pytest.mark.skipif(
    BUBBLEWRAP is None and "CI" not in os.environ, reason=f"{_WHY_NOT}"
)


NOBODY = 65534
"""The one ordinary user that every machine has."""
AS_NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")


class NoObjects:
    """An API server that has nothing."""

    async def config_map(self, namespace: str, name: str) -> None:
        return None

    async def secret(self, namespace: str, name: str) -> None:
        return None

    async def service_account_token(
        self, pod: Pod, audience: str, expiration_seconds: int
    ) -> TokenRequestStatus:
        raise GoneError("there are no tokens")


@asynccontextmanager
async def open_process_runtime(
    folder: Path,
    *,
    isolated: bool,
    allows_unconfined: bool = False,
    clock: Clock | None = None,
    cgroups: Cgroups | None = None,
    on_unlimited: OnUnlimited = lambda *_: None,
) -> AsyncIterator[ProcessRuntime]:
    """An open runtime as an agent has it; what it started runs on afterwards."""
    runtime = build_process_runtime(
        folder,
        isolated=isolated,
        allows_unconfined=allows_unconfined,
        clock=clock,
        cgroups=cgroups,
        on_unlimited=on_unlimited,
    )
    try:
        await runtime.open()
        yield runtime
    finally:
        runtime.close()


def build_process_runtime(
    folder: Path,
    *,
    isolated: bool,
    allows_unconfined: bool = False,
    clock: Clock | None = None,
    cgroups: Cgroups | None = None,
    on_unlimited: OnUnlimited = lambda *_: None,
) -> ProcessRuntime:
    clock = clock or SystemClock()
    bubblewrap = BUBBLEWRAP if isolated else None
    if bubblewrap is not None:
        bubblewrap = structs.replace(bubblewrap, allows_unconfined=allows_unconfined)
    preparer = ContainerPreparer(
        folder,
        bubblewrap=bubblewrap,
        objects=NoObjects(),
        services=NoServices(),
        host_ips=lambda: ("10.0.0.7",),
        allocatable=dict,
        hidden=(folder,),
        clock=clock,
    )
    return ProcessRuntime(
        folder,
        preparer,
        version="1.0",
        host_ips=lambda: ("10.0.0.7",),
        clock=clock,
        log_limits=LogLimits(),
        cgroups=cgroups or unavailable_cgroups("cgroups are not used"),
        on_unlimited=on_unlimited,
    )
