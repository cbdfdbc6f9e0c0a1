"""Which API server a root-dir belongs to: the pods in it are that server's.

To an agent on another server they would be pods that nobody asks for. It would end them, and let
go of what could not be told about them.
"""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
from msgspec import structs

from podstatus.agent.daemon.root_dir import RootDir, RootDirError
from podstatus.agent.daemon.run import EXIT_CONFIG, AgentError
from podstatus.base.msgspec_json import decode_json
from podstatus.client import ApiClient
from podstatus.client.rest.resources import NAMESPACES, ApiResource
from podstatus.kube.errors import DeniedError, GoneError

logger = logging.getLogger(__name__)

SERVER_FILE = "server.json"
_SERVICES = ApiResource("services")


class ServerIdentity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What tells an API server from another one, wherever it listens."""

    embedded: bool = False
    """It is our own, in the root-dir itself."""
    namespace: str = ""
    """The UID of `kube-system`, if we may see it."""
    service: str = ""
    """The UID of the service `kubernetes`, which nodes may see."""
    address: str = ""
    """For people."""


class _Meta(msgspec.Struct):
    uid: str = ""


class _Object(msgspec.Struct):
    metadata: _Meta


def is_different_server(recorded: ServerIdentity, current: ServerIdentity) -> bool:
    """Whether these are two servers, as far as anybody can tell."""
    if recorded.embedded != current.embedded:
        return True
    pairs = (recorded.namespace, current.namespace), (recorded.service, current.service)
    return any(one and other and one != other for one, other in pairs)


class ClusterIdentity:
    """Remembers the API server of a root-dir, and refuses another one."""

    def __init__(
        self,
        client: ApiClient,
        root: RootDir,
        *,
        embedded: bool,
        has_pods: Callable[[], Awaitable[bool]],
    ) -> None:
        """`has_pods`: whether there is anything that another server could do harm to."""
        self._client = client
        self._root = root
        self._embedded = embedded
        self._has_pods = has_pods
        self.is_verified = False
        """Whether it is the one; before, nothing it says counts."""

    async def check(self) -> None:
        """Find out. Raises CannotRunError if it is another one, ApiError if it does not say."""
        if self.is_verified:
            return
        known, found = self._load(), await self._fetch()
        if known is not None and is_different_server(known, found) and await self._has_pods():
            raise AgentError(_mismatch_message(known, found, self._root.path), code=EXIT_CONFIG)
        self._save(merge_identity(found, known))
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
            found = await self._client.get(resource, name, namespace=namespace)
            return decode_json(found, _Object).metadata.uid
        except (DeniedError, GoneError, msgspec.DecodeError):
            return ""

    def _load(self) -> ServerIdentity | None:
        try:
            text = self._root.read(SERVER_FILE)
            return None if text is None else decode_json(text, ServerIdentity)
        except (RootDirError, msgspec.DecodeError) as error:
            logger.warning("which API server the root-dir belongs to is not known: %s", error)
            return None

    def _save(self, identity: ServerIdentity) -> None:
        try:
            self._root.write(SERVER_FILE, msgspec.json.encode(identity) + b"\n")
        except RootDirError as error:
            logger.warning("which API server the root-dir belongs to is not kept: %s", error)


def merge_identity(current: ServerIdentity, recorded: ServerIdentity | None) -> ServerIdentity:
    """What was found, with what it did not say this time: rights may come and go."""
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
            f"{recorded.namespace}, is {current.namespace}), and pods of the old one are "
            "still here: "
            f"restore the old database, or remove {root / SERVER_FILE} to end them"
        )
    return (
        f"{root} holds pods of another API server ({_address(recorded)}); this one "
        f"({_address(current)}) would end them: choose another --root-dir, or remove "
        f"{root / SERVER_FILE} if they may end"
    )


def _address(server: ServerIdentity) -> str:
    return "the embedded one" if server.embedded else server.address
