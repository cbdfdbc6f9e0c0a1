"""The nodes to evaluate, with their facts and those of the status sync, sampled periodically."""

import logging
from collections.abc import Sequence

from podstatus.alerts.engine.engine import Engine
from podstatus.alerts.evaluator.ports import EvaluationRequest, RuleResults
from podstatus.alerts.model import Alert, Subject
from podstatus.alerts.rules.fact_variables import (
    UNKNOWN,
    Facts,
    NodeReadings,
    node_facts,
    sync_facts,
)
from podstatus.alerts.rules.warming_up import warming_up_node_facts
from podstatus.observe.ports import Freshness, NodeSummary, StatusView

logger = logging.getLogger(__name__)

_MAX_LISTED = 10
"""Rule names in the fact node.rulesOverBudget."""


class NodeSubjects:
    """Requests evaluations of nodes whose facts have changed."""

    def __init__(self, view: StatusView, engine: Engine) -> None:
        self._view = view
        self._engine = engine
        self._last_facts: dict[str, tuple[Facts, frozenset[str]] | None] = {}
        """The facts of the last evaluation of each node; None: it failed."""
        self._watched_since: int | None = None

    def sample(self, now: int) -> tuple[list[Alert], list[EvaluationRequest]]:
        """Return the resolved alerts of removed nodes, and requests for changed ones."""
        if self._watched_since is None:
            self._watched_since = now
        watched = now - self._watched_since
        nodes, sync, knowledge = self._view.nodes(), self._view.sync(), self._view.freshness()
        extra = {} if sync is None else sync_facts(sync, knowledge)
        changed: list[Alert] = []
        for name in [name for name in self._last_facts if name not in nodes]:
            del self._last_facts[name]
            changed += self._engine.subject_removed(_subject(name), now)
        requests = []
        for node in nodes.values():
            readings = node_readings(node, knowledge, self._engine.disabled_rules)
            warming_up = warming_up_node_facts(node, sync, knowledge, watched)
            facts = {**node_facts(node, readings), **extra}
            if (facts, warming_up) != self._last_facts.get(node.name):
                self._last_facts[node.name] = None
                subject = _subject(node.name)
                requests.append(
                    EvaluationRequest(subject=subject, facts=facts, now=now, warming_up=warming_up)
                )
        return changed, requests

    def apply(self, request: EvaluationRequest, results: RuleResults) -> list[Alert]:
        """Apply the results for a node; return the alerts that changed."""
        subject = request.subject
        try:
            changed = self._engine.apply(
                subject, results, request.now, warming_up=request.warming_up
            )
        except Exception:
            # A bug in one rule's state must not affect the other nodes.
            logger.exception("cannot apply rule results to a node: node=%s", subject.name)
            return []
        self._last_facts[subject.name] = request.facts, request.warming_up
        return changed


def node_readings(
    node: NodeSummary, freshness: Freshness, over_budget: Sequence[str] = ()
) -> NodeReadings:
    """Return the measurements of a node; `over_budget`: rules that were switched off."""
    full, skew = node.disk_full_in_seconds, freshness.clock_skew_seconds
    return NodeReadings(
        disk_used_fraction=node.used_fractions.get("disk", -1.0),
        disk_full_in_seconds=UNKNOWN if full is None else int(min(full, 2**62)),
        clock_skew_seconds=0 if skew is None else int(skew),
        rules_over_budget=_format_rules(over_budget),
    )


def _format_rules(rules: Sequence[str]) -> str:
    more = len(rules) - _MAX_LISTED
    return ", ".join(rules[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")


def _subject(name: str) -> Subject:
    return Subject(scope="node", name=name, node=name)
