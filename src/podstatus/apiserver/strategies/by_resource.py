"""The strategy of each resource, by its plural name, and the fields that selectors can match."""

from typing import Final

from podstatus.apiserver.strategies.base import Document, Strategy
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
from podstatus.apiserver.strategies.service import ServiceStrategy

NAME: Final = "metadata.name"
NAMESPACE: Final = "metadata.namespace"

STRATEGIES: Final[dict[str, Strategy]] = {
    "namespaces": NamespaceStrategy(),
    "pods": PodStrategy(),
    "nodes": NodeStrategy(),
    "events": EventStrategy(),
    "leases": LeaseStrategy(),
    "configmaps": ConfigMapStrategy(),
    "secrets": SecretStrategy(),
    "serviceaccounts": ServiceAccountStrategy(),
    "services": ServiceStrategy(),
}


def selectable_fields(resource: str, document: Document) -> dict[str, str]:
    """Return the values that field selectors can match: the `fields` function of a store."""
    metadata = document["metadata"]
    common = {NAME: metadata["name"], NAMESPACE: metadata.get("namespace", "")}
    return common | STRATEGIES[resource].fields(document)
