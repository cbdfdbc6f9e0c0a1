"""The agent as a process: start, signals, stop, supervision, root directory, logs, children.

Which services a node consists of belongs to `agent.compose`; command-line options and messages
belong to `cli`. Tests: tests/agent/daemon.
"""
