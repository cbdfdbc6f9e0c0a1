"""Node shutdown and drain:

`plan` groups pods by priority (pure), `manager` terminates group after group. Never here: signals,
systemd, the command `drain`. Tests: tests/workers/shutdown.
"""
