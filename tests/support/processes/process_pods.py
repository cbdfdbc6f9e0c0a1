"""Pods from a few lines of JSON-like values, and an API in memory for what they refer to."""

import asyncio
import base64
from collections.abc import Sequence
from typing import Any

from podstatus.kube.api_errors import ApiError
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.authentication import TokenRequestStatus
from podstatus.kube.objects.cluster import ConfigMap, Secret
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.service import Service
from podstatus.kube.scalars.time import Time

UID = "0d5f7c3e-6d55-4f3f-9d0a-0123456789ab"


def pod_of(container: dict[str, Any] | None = None, **spec: Any) -> Pod:
    """A pod `p` in `ns` with one container `a`."""
    one = {"name": "a", "image": "x", "command": ["true"], **(container or {})}
    document = {
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "uid": UID,
            "labels": {"app": "shop"},
            "annotations": {"note": "a b", "other": 'say "hi"\n'},
        },
        "spec": {"nodeName": "node-1", "serviceAccountName": "runner", "containers": [one], **spec},
    }
    return from_document(document, Pod)


class ObjectsInMemory:
    """ConfigMaps and secrets by name; tokens that are counted."""

    def __init__(self) -> None:
        self.config_maps: dict[str, ConfigMap] = {}
        self.secrets: dict[str, Secret] = {}
        self.error: ApiError | None = None
        self.tokens = 0
        self.expires = Time.parse("2100-01-01T01:00:00Z")

    def put_config_map(self, name: str, **data: str) -> None:
        self.config_maps[name] = ConfigMap(data=data)

    def put_secret(self, name: str, **data: bytes) -> None:
        coded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        self.secrets[name] = Secret(data=coded)

    async def config_map(self, namespace: str, name: str) -> ConfigMap | None:
        self._fail()
        return self.config_maps.get(name)

    async def secret(self, namespace: str, name: str) -> Secret | None:
        self._fail()
        return self.secrets.get(name)

    async def service_account_token(
        self, pod: Pod, audience: str, expiration_seconds: int
    ) -> TokenRequestStatus:
        self._fail()
        self.tokens += 1
        return TokenRequestStatus(
            token=f"token-{self.tokens}-{audience}-{expiration_seconds}",
            expiration_timestamp=self.expires,
        )

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


class ServicesInMemory:
    """The Services of a cluster; unless they are `listed`, none is known before `finish_list`."""

    def __init__(self, services: Sequence[Service] = (), *, listed: bool = True) -> None:
        self._services = tuple(services)
        self._listed = asyncio.Event()
        if listed:
            self._listed.set()

    def finish_list(self) -> None:
        self._listed.set()

    @property
    def has_synced(self) -> bool:
        return self._listed.is_set()

    async def wait_synced(self) -> None:
        await self._listed.wait()

    def objects(self) -> Sequence[Service]:
        return self._services if self.has_synced else ()
