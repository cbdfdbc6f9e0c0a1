"""The rules of each resource, by its plural."""

from typing import Final

from podstatus.apiserver.event_rules import EventStrategy
from podstatus.apiserver.lease_rules import LeaseStrategy
from podstatus.apiserver.namespace_rules import NamespaceStrategy
from podstatus.apiserver.node_rules import NodeStrategy
from podstatus.apiserver.plain_rules import ConfigMapStrategy, ServiceAccountStrategy
from podstatus.apiserver.pod_rules import PodStrategy
from podstatus.apiserver.secret_rules import SecretStrategy
from podstatus.apiserver.strategy import Strategy

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
