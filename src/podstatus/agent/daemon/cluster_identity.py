"""The identity of the API server that a root directory belongs to.

An agent that is started on another API server would find no spec for the pods in its root
directory: it would terminate them and drop their undelivered statuses. So it refuses to start.
"""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
from msgspec import structs

from podstatus.agent.daemon.endpoints_file import RootDirError
from podstatus.agent.daemon.root_dir import RootDir
from podstatus.agent.daemon.server_identity import SERVER_FILE, ServerIdentity
from podstatus.agent.errors import EXIT_CONFIG, AgentError
from podstatus.base.msgspec_json import decode_json
from podstatus.client import ApiClient
from podstatus.client.rest.resources import NAMESPACES, ApiResource
from podstatus.kube.api_errors import DeniedError, GoneError

logger = logging.getLogger(__name__)

_SERVICES = ApiResource("services")


class _Meta(msgspec.Struct):
    uid: str = ""


class _Object(msgspec.Struct):
    metadata: _Meta


def is_different_server(recorded: ServerIdentity, current: ServerIdentity) -> bool:
    """True if the UIDs that both identities have prove two different servers."""
    if recorded.embedded != current.embedded:
        return True
    pairs = (recorded.namespace, current.namespace), (recorded.service, current.service)
    return any(one and other and one != other for one, other in pairs)


class ClusterIdentity:
    """Records the API server of a root directory, and refuses another one."""

    def __init__(
        self,
        client: ApiClient,
        root: RootDir,
        *,
        embedded: bool,
        has_pods: Callable[[], Awaitable[bool]],
    ) -> None:
        """`has_pods`: True if there are pods or undelivered statuses to protect."""
        self._client = client
        self._root = root
        self._embedded = embedded
        self._has_pods = has_pods
        self.is_verified = False
        """True after a successful `check`; until then no pod of the server may be used."""

    async def check(self) -> None:
        """Compare the server with the recorded one, and record it.

        Raises AgentError if it is a different one, ApiError if it does not answer.
        """
        if self.is_verified:
            return
        recorded, current = self._load(), await self._fetch()
        if (
            recorded is not None
            and is_different_server(recorded, current)
            and await self._has_pods()
        ):
            message = _mismatch_message(recorded, current, self._root.path)
            raise AgentError(message, code=EXIT_CONFIG)
        self._save(merge_identity(current, recorded))
        self.is_verified = True

    async def _fetch(self) -> ServerIdentity:
        if self._embedded:
            namespace = await self._fetch_uid(NAMESPACES, "kube-system")
            return ServerIdentity(embedded=True, namespace=namespace)
        return ServerIdentity(
            namespace=await self._fetch_uid(NAMESPACES, "kube-system"),
            service=await self._fetch_uid(_SERVICES, "kubernetes", "default"),
            address=self._client.server,
        )

    async def _fetch_uid(
        self, resource: ApiResource, name: str, namespace: str | None = None
    ) -> str:
        try:
            content = await self._client.get(resource, name, namespace=namespace)
            return decode_json(content, _Object).metadata.uid
        except (DeniedError, GoneError, msgspec.DecodeError):
            return ""

    def _load(self) -> ServerIdentity | None:
        try:
            text = self._root.read(SERVER_FILE)
            return None if text is None else decode_json(text, ServerIdentity)
        except (RootDirError, msgspec.DecodeError) as error:
            logger.warning("cannot read the recorded API server identity: error=%s", error)
            return None

    def _save(self, identity: ServerIdentity) -> None:
        try:
            self._root.write(SERVER_FILE, msgspec.json.encode(identity) + b"\n")
        except RootDirError as error:
            logger.warning("cannot record the API server identity: error=%s", error)


def merge_identity(current: ServerIdentity, recorded: ServerIdentity | None) -> ServerIdentity:
    """Fill UIDs missing in `current` from `recorded`, since permissions may change."""
    if recorded is None or is_different_server(recorded, current):
        return current
    return structs.replace(
        current,
        namespace=current.namespace or recorded.namespace,
        service=current.service or recorded.service,
    )


def _mismatch_message(recorded: ServerIdentity, current: ServerIdentity, root: Path) -> str:
    if recorded.embedded and current.embedded:
        return (
            f"the database of the API server in {root} was replaced (kube-system was "
            f"{recorded.namespace}, is {current.namespace}), and pods of the old one still run: "
            f"restore the old database, or remove {root / SERVER_FILE} to terminate them"
        )
    return (
        f"{root} holds pods of another API server ({_address(recorded)}); this one "
        f"({_address(current)}) would terminate them: pass another --root-dir, or remove "
        f"{root / SERVER_FILE} to let them be terminated"
    )


def _address(server: ServerIdentity) -> str:
    return "the embedded one" if server.embedded else server.address
