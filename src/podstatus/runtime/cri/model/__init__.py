"""Pure translation: pods and containers to messages of CRI, and statuses of CRI to facts.

Every field of a spec is translated, or rejected by name in `unsupported_fields`. Paths, variables
and images are arguments; finding them does not belong here.

Tests: tests/runtime/cri/model.
"""
