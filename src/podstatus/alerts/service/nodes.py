"""What is known of nodes, and how far the API server has everything: looked at now and then."""

import logging
from collections.abc import Sequence

from podstatus.alerts.engine.engine import Engine
from podstatus.alerts.evaluator.ports import Answers, Question
from podstatus.alerts.model import Alert, Subject
from podstatus.alerts.rules.facts import UNKNOWN, Facts, NodeReadings, node_facts, sync_facts
from podstatus.alerts.rules.warming_up import young_node_facts
from podstatus.observe.status_view import Knowledge, NodeSummary, Observatory

logger = logging.getLogger(__name__)

_MAX_LISTED = 10
"""Rules that are named in a fact."""


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

    def sample(self, now: int) -> tuple[list[Alert], list[Question]]:
        """The alerts of nodes that are gone, and what to ask about those that are different."""
        self._begun = now if self._begun is None else min(self._begun, now)
        watched = now - self._begun
        nodes, sync, knowledge = self._known.nodes(), self._known.sync(), self._known.knowledge()
        beside = {} if sync is None else sync_facts(sync, knowledge)
        changed: list[Alert] = []
        for name in [name for name in self._asked if name not in nodes]:
            del self._asked[name]
            changed += self._engine.gone(_subject(name), now)
        questions = []
        for node in nodes.values():
            readings = readings_of(node, knowledge, self._engine.switched_off)
            young = young_node_facts(node, sync, knowledge, watched)
            facts = {**node_facts(node, readings), **beside}
            if (facts, young) != self._asked.get(node.name):
                self._asked[node.name] = None
                subject = _subject(node.name)
                questions.append(Question(subject=subject, facts=facts, now=now, young=young))
        return changed, questions

    def apply(self, question: Question, answers: Answers) -> list[Alert]:
        """The alerts that changed by what was answered about a node."""
        subject = question.subject
        try:
            changed = self._engine.apply(subject, answers, question.now, young=question.young)
        except Exception:
            # A mistake of ours, which the others are not to suffer for.
            logger.exception("rules cannot be asked about a node: node=%s", subject.name)
            return []
        self._asked[subject.name] = question.facts, question.young
        return changed


def readings_of(
    node: NodeSummary, knowledge: Knowledge, over_budget: Sequence[str] = ()
) -> NodeReadings:
    """What is measured of a node; `over_budget`: rules that were switched off."""
    full, skew = node.disk_full_in_seconds, knowledge.clock_skew_seconds
    return NodeReadings(
        disk_used_fraction=node.used_fractions.get("disk", -1.0),
        disk_full_in_seconds=UNKNOWN if full is None else int(min(full, 2**62)),
        clock_skew_seconds=0 if skew is None else int(skew),
        rules_over_budget=_listed(over_budget),
    )


def _listed(rules: Sequence[str]) -> str:
    more = len(rules) - _MAX_LISTED
    return ", ".join(rules[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")


def _subject(name: str) -> Subject:
    return Subject(scope="node", name=name, node=name)
