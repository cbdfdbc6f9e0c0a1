"""The embedded API server, composed for tests.

`python -m podstatus.testing.servers.embedded FOLDER` serves until SIGTERM or SIGINT; it prints its
URL once it serves. Use it for tests that kill the server; a server in the test's own process
(`podstatus.testing.apiserver`) is faster.
"""

import argparse
import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import NamedTuple

from podstatus.apiserver.controllers.decide.policy import NodeMonitorPolicy
from podstatus.apiserver.kubelet.kubelet_client import KubeletClientConfig
from podstatus.apiserver.pki.certificates import KUBELET_CLIENT, Certificates
from podstatus.apiserver.pki.token_and_kubeconfig import (
    ClientCredentials,
    ensure_signing_key,
    ensure_token,
    write_client_files,
)
from podstatus.apiserver.server import ApiServer, ApiServerOptions
from podstatus.apiserver.state_dir import StateDir
from podstatus.apiserver.storage.sqlite_file import DATABASE
from podstatus.apiserver.storage.store import Store
from podstatus.apiserver.strategies.by_resource import selectable_fields
from podstatus.base.system_time import wall_clock_ns


class RunningServer(NamedTuple):
    """A running server and its store."""

    access: ClientCredentials
    store: Store


@asynccontextmanager
async def serve(
    path: Path,
    *,
    durable: bool,
    faults: bool,
    schedule: bool,
    port: int = 0,
    node_authority: Path | None = None,
    node_monitor: NodeMonitorPolicy | None = None,
) -> AsyncIterator[RunningServer]:
    """Serve with the certificates and token in `path`; if durable, also with its objects."""
    with closing(StateDir(path)) as folder:
        certificates = Certificates(folder, wall_clock_ns())
        authority = certificates.ensure()
        token = ensure_token(folder)
        with closing(Store.open(path / DATABASE if durable else None, selectable_fields)) as store:
            server = ApiServer(
                store,
                token=token,
                ssl_context=certificates.server_context(),
                options=ApiServerOptions(
                    port=port,
                    faults=faults,
                    schedule=schedule,
                    node_monitor=node_monitor or NodeMonitorPolicy(),
                    authority=authority,
                    signing_key=ensure_signing_key(folder),
                    kubelet=KubeletClientConfig(
                        certificate=path / f"{KUBELET_CLIENT}.crt",
                        key=path / f"{KUBELET_CLIENT}.key",
                        authority=node_authority,
                    ),
                ),
            )
            try:
                url = f"https://127.0.0.1:{await server.start()}"
                access = ClientCredentials(url=url, token=token, authority=authority)
                write_client_files(folder, access)
                yield RunningServer(access, store)
            finally:
                await server.stop()


async def _serve_until_signal(options: argparse.Namespace) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with serve(
        options.folder,
        durable=True,
        faults=options.faults,
        schedule=options.schedule,
        port=options.port,
    ) as served:
        print(served.access.url, flush=True)  # noqa: T201 - the parent process waits for this line
        await stopped.wait()


def main() -> None:
    """Serve a directory until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m podstatus.testing.servers.embedded")
    parser.add_argument("folder", type=Path, help="directory of certificates, token and objects")
    parser.add_argument("--port", type=int, default=0, help="port; 0 picks a free one")
    parser.add_argument("--faults", action="store_true", help="enable /podstatus/faults")
    parser.add_argument("--schedule", action="store_true", help="run the scheduler")
    asyncio.run(_serve_until_signal(parser.parse_args()))


if __name__ == "__main__":
    main()
