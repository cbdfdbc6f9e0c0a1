"""Actions: what alerts can change on the node and its pods, and the limits of that.

`guarded_remediation` checks every change: allowed by the rule file, rate limited, reported as an
event. Node conditions and taints follow from the alerts that fire. Messages to people belong in
notifiers. Tests: tests/alerts/actions.
"""
