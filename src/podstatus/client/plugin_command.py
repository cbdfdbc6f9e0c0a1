"""An exec plugin as a command: found, given what it has to know, run, understood."""

import os
import shutil
import sys
from pathlib import Path

from podstatus.client.errors import CredentialsError
from podstatus.client.exec_credential import (
    BadAnswerError,
    PluginCredential,
    exec_info,
    parse_credential,
)
from podstatus.client.kubeconfig import Cluster, ExecPlugin
from podstatus.client.kubeconfig_rules import ALWAYS, NEVER
from podstatus.client.masking import shown_line
from podstatus.client.run_plugin import MOST_OUTPUT, Ran, run_plugin

PLUGIN_SECONDS = 8.0
"""How long a plugin may take: a caller who wants to know within ten seconds still does."""
_TYPING_SECONDS = 120.0
"""How long one may take that talks with a person."""


class PluginCommand:
    """One plugin, for one cluster."""

    def __init__(
        self, plugin: ExecPlugin, cluster: Cluster, *, seconds: float = PLUGIN_SECONDS
    ) -> None:
        self._plugin = plugin
        self._cluster = cluster
        self._seconds = seconds

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return f"exec plugin {self._plugin.command}"

    async def ask(self, authority: bytes) -> PluginCredential:
        """Run it once. Raises CredentialsError, with one line about what happened."""
        interactive = self._is_interactive()
        command = [self._found(), *self._plugin.args]
        info = exec_info(self._plugin, self._cluster, authority, interactive=interactive)
        environment = {**os.environ, **dict(self._plugin.env), "KUBERNETES_EXEC_INFO": info}
        seconds = max(self._seconds, _TYPING_SECONDS) if interactive else self._seconds
        try:
            ran = await run_plugin(command, environment, seconds=seconds, interactive=interactive)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else None
            raise self._failed(f"cannot be run ({why or 'bad command'}); {self._hint()}") from None
        return self._understood(ran, seconds)

    def _understood(self, ran: Ran, seconds: float) -> PluginCredential:
        if ran.code is None:
            raise self._failed(
                f"did not end within {seconds:g} s and was killed{_complaint(ran)}; "
                "run it by hand to see what it waits for"
            )
        if ran.code != 0:
            raise self._failed(f"{_ending(ran.code)}{_complaint(ran)}; run it by hand, or log in")
        if len(ran.output) > MOST_OUTPUT:
            raise self._failed("printed more than 1 MiB; it has to print an ExecCredential alone")
        try:
            return parse_credential(ran.output, self._plugin.api_version)
        except BadAnswerError as error:
            raise self._failed(f"is of no use: {error}; run it by hand to see") from None

    def _is_interactive(self) -> bool:
        """Whether it gets our terminal."""
        mode = self._plugin.interactive_mode
        if mode == NEVER:
            return False
        has_terminal = _is_terminal()
        if mode == ALWAYS and not has_terminal:
            raise self._failed(
                "wants to talk with a person, but standard input is no terminal; log in by other "
                "means, or start this in a terminal"
            )
        return has_terminal

    def _found(self) -> str:
        """Where the command is: a path as it is, a name on our own PATH."""
        command = self._plugin.command
        found = shutil.which(command)
        if found is None and "/" in command and Path(command).is_file():
            raise self._failed("may not be executed; make it executable")
        if found is None:
            where = "" if "/" in command else " on the PATH"
            raise self._failed(f"is not there{where}; {self._hint()}")
        if not Path(found).is_absolute():
            # Upstream: exec.ErrDot. A command must not depend on where we happen to be.
            raise self._failed("was found by a relative PATH only; name it with its folder")
        return found

    def _hint(self) -> str:
        return self._plugin.install_hint or "install it, or correct `command`"

    def _failed(self, what: str) -> CredentialsError:
        return CredentialsError(f"{self.name} {what}")


def _is_terminal() -> bool:
    try:
        return sys.stdin is not None and os.isatty(sys.stdin.fileno())
    except (OSError, ValueError):
        return False


def _ending(code: int) -> str:
    return f"failed with exit code {code}" if code > 0 else f"was ended by signal {-code}"


def _complaint(ran: Ran) -> str:
    line = shown_line(ran.errors)
    return f" ({line})" if line else ""
