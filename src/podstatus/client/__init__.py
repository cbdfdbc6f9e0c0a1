"""The only speaker to an API server: credentials, requests, watches, and their errors.

`rest` sends requests, `auth` and `kubeconfig` find the server and the credentials, `informer` keeps
a copy of objects, `typed` implements the ports of other packages. `ApiClient` is the async client,
`BlockingClient` the same calls without async code; docs/client.md has examples. What an object
means (terminal, mirror) never belongs here. Needs `podstatus[agent]`. Tests: tests/client.
"""

try:
    import aiohttp  # noqa: F401 - only to say what to do if it is not there
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "podstatus.client needs aiohttp; install it with: pip install 'podstatus[agent]'",
        name="aiohttp",
    ) from error

from podstatus.client.api_client import ApiClient
from podstatus.client.auth.config import Access, Credentials
from podstatus.client.auth.load_config import (
    default_access,
    in_cluster_access,
    kubeconfig_access,
    token_access,
)
from podstatus.client.errors import CredentialsError, KubeconfigError, SilentError
from podstatus.client.informer.reflector import Reflector
from podstatus.client.informer.reflector_counts import ReflectorCounts
from podstatus.client.informer.reflector_policy import ReflectorPolicy
from podstatus.client.informer.store import Added, Change, Removed, Updated
from podstatus.client.informer.transform import Digest
from podstatus.client.rest.rate_limit import TokenBucket
from podstatus.client.rest.resources import (
    CONFIG_MAPS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from podstatus.client.rest.transport import Timing
from podstatus.client.rest.watch import WatchEvent
from podstatus.client.sync_client import BlockingClient
from podstatus.client.typed.nodes import HttpNodeApi, node_reflector
from podstatus.client.typed.pods import HttpPodApi, pod_reflector

__all__ = [
    "CONFIG_MAPS",
    "EVENTS",
    "LEASES",
    "NAMESPACES",
    "NODES",
    "PODS",
    "SECRETS",
    "SERVICE_ACCOUNTS",
    "Access",
    "Added",
    "ApiClient",
    "BlockingClient",
    "Change",
    "Credentials",
    "CredentialsError",
    "Digest",
    "HttpNodeApi",
    "HttpPodApi",
    "KubeconfigError",
    "Reflector",
    "ReflectorCounts",
    "ReflectorPolicy",
    "Removed",
    "Resource",
    "SilentError",
    "Timing",
    "TokenBucket",
    "Updated",
    "WatchEvent",
    "default_access",
    "in_cluster_access",
    "kubeconfig_access",
    "node_reflector",
    "pod_reflector",
    "token_access",
]
