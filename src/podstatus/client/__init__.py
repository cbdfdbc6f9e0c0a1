"""The only speaker to an API server: who we are, requests, watches, and what went wrong.

    async with ApiClient(default_access()) as client:
        pods = await client.list(PODS, namespace="default")

Needs `podstatus[agent]`.
"""

try:
    import aiohttp  # noqa: F401 - only to say what to do if it is not there
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "podstatus.client needs aiohttp; install it with: pip install 'podstatus[agent]'",
        name="aiohttp",
    ) from error

from podstatus.client.access import Access, Credentials
from podstatus.client.api_client import ApiClient
from podstatus.client.blocking import BlockingClient
from podstatus.client.digest import Digest
from podstatus.client.errors import CredentialsError, KubeconfigError, SilentError
from podstatus.client.find_access import (
    default_access,
    in_cluster_access,
    kubeconfig_access,
    token_access,
)
from podstatus.client.limits import TokenBucket
from podstatus.client.node_api import HttpNodeApi
from podstatus.client.node_watch import node_reflector
from podstatus.client.pod_api import HttpPodApi
from podstatus.client.pod_watch import pod_reflector
from podstatus.client.reflector import Reflector
from podstatus.client.reflector_counts import ReflectorCounts
from podstatus.client.reflector_policy import ReflectorPolicy
from podstatus.client.replica import Added, Change, Removed, Updated
from podstatus.client.resources import (
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
from podstatus.client.transport import Timing
from podstatus.client.watch_event import WatchEvent

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
