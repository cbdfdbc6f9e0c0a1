"""The names that `podstatus.client` exports."""

from podstatus.base.rate_limiter import RateLimiter
from podstatus.client.api_client import ApiClient
from podstatus.client.auth.config import ClientConfig, Credentials
from podstatus.client.auth.in_cluster_config import in_cluster_config
from podstatus.client.auth.load_config import kubeconfig_config, load_config, token_config
from podstatus.client.config_errors import CredentialsError, KubeconfigError, WatchIdleError
from podstatus.client.informer.list_watch_calls import ObjectSelection
from podstatus.client.informer.object_store import Added, ObjectChange, Removed, Updated
from podstatus.client.informer.reflector import Reflector
from podstatus.client.informer.reflector_state import ReflectorCounts
from podstatus.client.informer.reflector_timing import ReflectorPolicy
from podstatus.client.informer.transform import Transform
from podstatus.client.rest.http_transport import Timeouts
from podstatus.client.rest.resources import (
    CONFIG_MAPS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    ApiResource,
)
from podstatus.client.rest.watch_events import WatchEvent
from podstatus.client.sync_client import SyncClient
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
    "SERVICES",
    "SERVICE_ACCOUNTS",
    "Added",
    "ApiClient",
    "ApiResource",
    "ClientConfig",
    "Credentials",
    "CredentialsError",
    "HttpNodeApi",
    "HttpPodApi",
    "KubeconfigError",
    "ObjectChange",
    "ObjectSelection",
    "RateLimiter",
    "Reflector",
    "ReflectorCounts",
    "ReflectorPolicy",
    "Removed",
    "SyncClient",
    "Timeouts",
    "Transform",
    "Updated",
    "WatchEvent",
    "WatchIdleError",
    "in_cluster_config",
    "kubeconfig_config",
    "load_config",
    "node_reflector",
    "pod_reflector",
    "token_config",
]
