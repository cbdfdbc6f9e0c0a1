"""A CRI runtime as an agent has it, on the containerd of a test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from podstatus.base.system_clock import SystemClock
from podstatus.runtime.cri.client.channel import CriChannel
from podstatus.runtime.cri.client.identity import identify
from podstatus.runtime.cri.client.image_service import ImageService
from podstatus.runtime.cri.client.runtime_service import RuntimeService
from podstatus.runtime.cri.container_preparer import CriContainerPreparer
from podstatus.runtime.cri.cri_runtime import CriRuntime
from podstatus.runtime.process.reference_resolver import PodObjects
from podstatus.runtime.process.service_links import NoServices
from tests.support.processes.process_runtime import NoObjects

HOST_IPS = ("192.0.2.1",)


@asynccontextmanager
async def open_cri_runtime(
    endpoint: str, folder: Path, *, objects: PodObjects | None = None, request_seconds: float = 20.0
) -> AsyncIterator[CriRuntime]:
    """An open runtime; what it started runs on afterwards."""
    clock, channel = SystemClock(), CriChannel(endpoint)
    preparer = CriContainerPreparer(
        folder,
        objects=objects or NoObjects(),
        services=NoServices(),
        host_ips=lambda: HOST_IPS,
        allocatable=dict,
        hidden=(folder,),
        clock=clock,
    )
    service = RuntimeService(channel, request_seconds=request_seconds)
    runtime = CriRuntime(
        service,
        ImageService(channel, request_seconds=request_seconds),
        preparer,
        identity=identify(endpoint, seconds=request_seconds),
        clock=clock,
        on_close=channel.close,
    )
    try:
        yield runtime
    finally:
        await runtime.close()
