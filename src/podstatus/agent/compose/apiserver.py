"""Build the embedded API server with its store."""

from podstatus.agent.daemon.serve_apiserver import ApiServerConfig, ServeError, StartableServer
from podstatus.apiserver.server import ApiServer, ApiServerOptions
from podstatus.apiserver.storage.store import StorageError, Store
from podstatus.apiserver.strategies.by_resource import selectable_fields


class _ServerWithStore:
    """A server that closes its store after it has stopped."""

    def __init__(self, server: ApiServer, store: Store) -> None:
        self._server = server
        self._store = store

    async def start(self) -> int:
        return await self._server.start()

    async def stop(self) -> None:
        await self._server.stop()
        self._store.close()


def build_api_server(parts: ApiServerConfig) -> StartableServer:
    """Build the server without starting it. Raises ServeError."""
    try:
        store = Store.open(parts.database, selectable_fields, cluster=parts.cluster)
    except StorageError as error:
        raise ServeError(str(error)) from error
    server = ApiServer(
        store,
        token=parts.token,
        ssl_context=parts.ssl_context,
        options=ApiServerOptions(
            host=parts.host,
            port=parts.port,
            faults=parts.faults,
            schedule=True,
            kubelet=parts.nodes,
        ),
    )
    return _ServerWithStore(server, store)
