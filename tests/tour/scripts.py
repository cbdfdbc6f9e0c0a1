"""The tour's pods for the simulated runtime: what their commands do, said by annotations.

The pods of a scenario stay as they are but for these annotations, so its recorded sequences are
the judge. What needs probes or real files comes with the rooms that bring them.
"""

import copy
from typing import Any

Document = dict[str, Any]

SCRIPTS: dict[str, dict[str, str]] = {
    "run-single": {},
    "complete-never": {"a": "run=2s"},
    "complete-onfailure": {"a": "run=2s"},
    "complete-always": {"a": "run=3s"},
    "fail-three-never": {"a": "run=2s, exit=3"},
    "fail-three-onfailure": {"a": "run=3s, exit=3"},
    "fail-three-always": {"a": "run=3s, exit=3"},
    "crash-loop-two-restarts": {"a": "run=2s, exit=1"},
    "two-containers-one-fails-never": {"b": "run=3s, exit=3"},
    "two-containers-one-fails-always": {"b": "run=3s, exit=3"},
    "two-containers-mixed-end-never": {"a": "run=2s", "b": "run=5s, exit=3"},
    "two-containers-both-complete": {"a": "run=2s", "b": "run=5s"},
    "init-two-in-order": {"first": "run=2s", "second": "run=2s"},
    "init-fails-never": {"first": "run=2s, exit=4"},
    "init-fails-always": {"first": "run=2s, exit=4"},
    "sidecar-then-main-completes": {"a": "run=3s"},
    "readiness-gate": {},
    "active-deadline": {"a": "stop-exit=5"},
    "delete-exits-zero": {"a": "stop=2s"},
    "delete-exits-five": {"a": "stop=2s, stop-exit=5"},
    "delete-ignores-term": {"a": "stop=never"},
    "delete-two-containers": {"a": "stop=1s", "b": "stop=4s, stop-exit=5"},
    "delete-grace-zero": {},
    "delete-during-init": {"first": "stop=1s, stop-exit=4"},
    "delete-completed": {"a": "run=1s"},
    "message-file": {"a": 'run=1s, exit=3, message="all is lost"'},
    "message-of-the-last-run-is-kept": {"a": 'run=2s, exit=3, message="first"; run=forever'},
    "image-missing-never-pull": {"a": "fail=ErrImageNeverPull"},
    "command-missing-never": {"a": "fail=StartError"},
    "reject-node-selector": {},
    "reject-out-of-cpu": {},
    "restart-rule-matches": {"a": "run=2s, exit=42; run=2s"},
    "restart-rule-does-not-match": {"a": "run=2s, exit=41"},
    "foreign-ready-false": {},
    "foreign-condition-kept": {"a": "run=4s"},
    "static-runs": {},
    "static-removed": {"a": "stop=2s"},
    "static-mirror-deleted-by-a-user": {},
    "agent-restart-container-runs": {},
    "agent-restart-container-exits-meanwhile": {"a": "run=5s, exit=3"},
    "poststart-ok": {"a": "post-start=2s"},
    "poststart-fails": {"a": "post-start=2s, post-start-exit=6, stop-exit=3"},
    "prestop-ok": {"a": "pre-stop=2s"},
    "prestop-fails": {"a": "pre-stop-exit=6"},
    "restart-policy-never-deleted-exit-zero": {"a": "stop=2s", "b": "run=3s, exit=3"},
}
"""By scenario and container."""


def simulated(record: Document) -> Document:
    """The record of a scenario, with what its containers do said by annotations."""
    record = copy.deepcopy(record)
    scenario = record["scenario"]
    scripts = SCRIPTS[scenario["name"]]
    manifests = [action["do"]["content"] for action in scenario["actions"] if _is_manifest(action)]
    for pod in (*scenario.get("pods", []), *manifests):
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations |= {f"simulate.podstatus.dev/{name}": s for name, s in scripts.items()}
    return record


def _is_manifest(action: Document) -> bool:
    return "content" in action.get("do", {})
