"""The strategy of each resource, by its plural name."""

from typing import Final

from podstatus.apiserver.strategies.base import Strategy
from podstatus.apiserver.strategies.config_objects import (
    ConfigMapStrategy,
    SecretStrategy,
    ServiceAccountStrategy,
)
from podstatus.apiserver.strategies.event import EventStrategy
from podstatus.apiserver.strategies.lease import LeaseStrategy
from podstatus.apiserver.strategies.namespace import NamespaceStrategy
from podstatus.apiserver.strategies.node import NodeStrategy
from podstatus.apiserver.strategies.pod.strategy import PodStrategy

STRATEGIES: Final[dict[str, Strategy]] = {
    "namespaces": NamespaceStrategy(),
    "pods": PodStrategy(),
    "nodes": NodeStrategy(),
    "events": EventStrategy(),
    "leases": LeaseStrategy(),
    "configmaps": ConfigMapStrategy(),
    "secrets": SecretStrategy(),
    "serviceaccounts": ServiceAccountStrategy(),
}
