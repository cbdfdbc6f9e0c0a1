"""A token in a file that somebody renews."""

import logging

from podstatus.client.errors import CredentialsError
from podstatus.client.files import UnreadableError, read_file
from podstatus.client.kubeconfig_rules import is_header_text

logger = logging.getLogger(__name__)


class TokenFile:
    """The last good token of a file.

    While the file is being replaced it may be empty or away for a moment: then the last good
    token stays, until a server has refused it.

    Upstream: fileTokenSource, transport/token_source.go, client-go v0.36.4.
    """

    def __init__(self, path: str, token: str = "") -> None:
        """With the token to use as long as the file cannot be read, if there is one."""
        self._path = path
        self._token = token
        self._warned = ""

    def __repr__(self) -> str:
        return f"TokenFile({self._path})"

    def authorization(self) -> str:
        """The header for what is in the file now. Raises CredentialsError."""
        problem = self._look()
        if problem and not self._token:
            raise CredentialsError(
                f"token file {self._path} cannot be used: {problem}; have a token written to it"
            )
        if problem and problem != self._warned:
            logger.warning(
                "token file not read, the last good token stays: file=%s error=%s",
                self._path,
                problem,
            )
        self._warned = problem
        return f"Bearer {self._token}"

    def refuse(self) -> None:
        """Drop the last good token, as a server has: now only the file can help."""
        self._token = ""

    def _look(self) -> str:
        """Take over what is in the file, or say what is wrong with it."""
        try:
            token = read_file(self._path).decode().strip()
        except UnreadableError as error:
            return str(error)
        except UnicodeDecodeError:
            return "it is no text"
        if not token:
            return "it is empty"
        if not is_header_text(token):
            return "it has characters in it that no token has"
        self._token = token
        return ""


class FixedHeader:
    """A header that never changes, or none."""

    def __init__(self, header: str | None) -> None:
        self._header = header

    def __repr__(self) -> str:
        return "FixedHeader(…)"

    def authorization(self) -> str | None:
        """The header."""
        return self._header

    def refuse(self) -> None:
        """There is no other."""
