"""The API server that users' tests have, for ours."""

from podstatus.testing.apiserver import api_server

__all__ = ["api_server"]
