"""The error of an agent, and the exit codes of its process.

AgentError     the agent cannot start or continue; the message has the reason and the remedy
"""

EXIT_FAILURE = 1
EXIT_CONFIG = 2
"""Exit code of failures that a restart does not repair: settings, an unusable root directory."""


class AgentError(Exception):
    """The agent or its API server cannot run; the message has the reason and the remedy."""

    def __init__(self, message: str, *, code: int = EXIT_FAILURE) -> None:
        super().__init__(message)
        self.code = code
