"""Errors of the commands' clients.

RequestError                no server, or the request failed; the message has the remedy
├── NoAnswerError           the agent did not answer in time
├── ServerUnavailableError  the API server cannot be reached
└── NotFoundError           the object does not exist
"""


class RequestError(Exception):
    """The request failed, or there is no server; the message has the remedy."""


class NoAnswerError(RequestError):
    """The agent did not answer in time."""


class ServerUnavailableError(RequestError):
    """The API server cannot be reached."""


class NotFoundError(RequestError):
    """The object does not exist: the server answered 404 Not Found."""
