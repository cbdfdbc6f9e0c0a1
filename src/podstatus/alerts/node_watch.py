"""What is known of nodes, and how far the API server has everything: looked at now and then."""

import logging

from podstatus.alerts.alert import Alert, Subject
from podstatus.alerts.engine import Engine
from podstatus.alerts.facts import UNKNOWN, Facts, NodeReadings, node_facts, sync_facts
from podstatus.alerts.young_facts import young_node_facts
from podstatus.observe.ports import Knowledge, NodeSummary, Observatory

logger = logging.getLogger(__name__)


class NodeWatch:
    """Asks rules about nodes whose facts are others than before."""

    def __init__(self, known: Observatory, engine: Engine) -> None:
        self._known = known
        self._engine = engine
        self._asked: dict[str, tuple[Facts, frozenset[str]] | None] = {}
        """What each was last asked with; None: that failed."""
        self._begun: int | None = None

    def set_ahead(self, nanos: int) -> None:
        """The clock was set ahead by so much: nodes were not watched for longer by that."""
        if self._begun is not None:
            self._begun += nanos

    def sample(self, now: int) -> list[Alert]:
        """The alerts that changed, of nodes as they are now."""
        self._begun = now if self._begun is None else min(self._begun, now)
        watched = now - self._begun
        nodes, sync, knowledge = self._known.nodes(), self._known.sync(), self._known.knowledge()
        beside = {} if sync is None else sync_facts(sync, knowledge)
        changed: list[Alert] = []
        for name in [name for name in self._asked if name not in nodes]:
            del self._asked[name]
            changed += self._engine.gone(_subject(name), now)
        for node in nodes.values():
            young = young_node_facts(node, sync, knowledge, watched)
            changed += self._ask(node, readings_of(node, knowledge), beside, young, now)
        return changed

    def _ask(
        self,
        node: NodeSummary,
        readings: NodeReadings,
        beside: Facts,
        young: frozenset[str],
        now: int,
    ) -> list[Alert]:
        try:
            facts = {**node_facts(node, readings), **beside}
            if (facts, young) == self._asked.get(node.name):
                return []
            self._asked[node.name] = None
            changed = self._engine.tell(_subject(node.name), facts, now, young=young)
            self._asked[node.name] = facts, young
        except Exception:
            # A mistake of ours, which the others are not to suffer for.
            logger.exception("rules cannot be asked about a node: node=%s", node.name)
            return []
        return changed


def readings_of(node: NodeSummary, knowledge: Knowledge) -> NodeReadings:
    """What is measured of a node."""
    full, skew = node.disk_full_in_seconds, knowledge.clock_skew_seconds
    return NodeReadings(
        disk_used_fraction=node.used_fractions.get("disk", -1.0),
        disk_full_in_seconds=UNKNOWN if full is None else int(min(full, 2**62)),
        clock_skew_seconds=0 if skew is None else int(skew),
    )


def _subject(name: str) -> Subject:
    return Subject(scope="node", name=name, node=name)
