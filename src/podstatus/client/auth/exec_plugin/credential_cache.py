"""Credentials from an exec plugin, renewed before they expire.

Upstream: Authenticator, plugin/pkg/client/auth/exec/exec.go, client-go v0.36.4.
"""

import asyncio
import logging
import ssl

from podstatus.base.clock import Clock
from podstatus.client.auth.config import Credentials
from podstatus.client.auth.exec_plugin.exec_credential import PluginCredential
from podstatus.client.auth.exec_plugin.run_plugin import PluginCommand
from podstatus.client.auth.tls import KeyPair, PemContent, TlsFiles, UnusableTlsError
from podstatus.client.config_errors import CredentialsError
from podstatus.client.kubeconfig.model import Pem, RedactedStruct

logger = logging.getLogger(__name__)

_SECOND = 10**9
_RENEW_BEFORE_NS = 30 * _SECOND
"""A credential is renewed this long before it expires, or after 80 % of its remaining lifetime if
that is later. Requests use the old one in the meantime."""
_MIN_RUN_INTERVAL_NS = _SECOND
"""Minimum time between a run that failed, or returned a refused credential, and the next run."""


class _CachedCredential(RedactedStruct, frozen=True, kw_only=True, eq=False):
    """The plugin's last credential, and the values derived from it. Times are Unix ns."""

    credential: PluginCredential
    credentials: Credentials
    base: ssl.SSLContext
    """The TLS context without the plugin's certificate; replaced when CA files change."""
    expires: int | None
    renew_at: int | None


class ExecCredentials:
    """Credentials from a plugin. Concurrent callers share one run.

    A caller that is cancelled does not stop the run for the others. For one event loop at a time.
    """

    def __init__(self, command: PluginCommand, tls: TlsFiles, clock: Clock) -> None:
        self._command = command
        self._tls = tls
        self._clock = clock
        self._cached: _CachedCredential | None = None
        self._failure: CredentialsError | None = None
        self._last_run_at: int | None = None
        """Monotonic time of the end of the last run if it failed or returned nothing new."""
        self._run: asyncio.Task[None] | None = None
        self._reloaded_at = clock.monotonic()

    async def credentials(self) -> Credentials:
        """Return the current credentials; run the plugin if needed. Raises CredentialsError."""
        cached, now = self._cached, self._clock.now()
        if cached is None:
            return await self._renew_now()
        if self._clock.monotonic() - self._reloaded_at >= _SECOND:
            cached = self._with_current_files(cached, now)
        if cached.renew_at is None or now < cached.renew_at:
            return cached.credentials
        if cached.expires is not None and cached.expires <= now:
            return await self._renew_now()
        if not self._ran_recently():
            self._ensure_running()
        return cached.credentials

    async def renew(self, refused: Credentials) -> Credentials | None:
        """Return other credentials, from a new run unless there was one; None if there are none.

        Raises CredentialsError.
        """
        if self._cached is not None and self._cached.credentials is not refused:
            return self._cached.credentials
        renewed = await self._renew_now()
        return None if renewed is refused else renewed

    async def _renew_now(self) -> Credentials:
        if not self._ran_recently():
            # Shielded: other callers, present and future, need the result.
            await asyncio.shield(self._ensure_running())
        if self._failure is not None or self._cached is None:
            # A new error for each caller, as each adds its own traceback.
            raise CredentialsError(str(self._failure))
        return self._cached.credentials

    def _ran_recently(self) -> bool:
        last_run_at = self._last_run_at
        return (
            last_run_at is not None and self._clock.monotonic() - last_run_at < _MIN_RUN_INTERVAL_NS
        )

    def _ensure_running(self) -> asyncio.Task[None]:
        if self._run is None or self._run.done():
            self._run = asyncio.create_task(self._run_once(), name="podstatus-exec-plugin")
        return self._run

    async def _run_once(self) -> None:
        try:
            self._tls.context(self._clock.now())
            credential = await self._command.run(self._tls.authority())
            self._accept(credential, self._clock.now())
        except CredentialsError as error:
            self._fail(error)

    def _accept(self, credential: PluginCredential, now: int) -> None:
        before = self._cached
        cached = self._build(credential, now)
        self._cached, self._failure = cached, None
        is_new = before is None or cached.credentials is not before.credentials
        is_over = cached.expires is not None and cached.expires <= now
        self._last_run_at = self._clock.monotonic() if is_over or not is_new else None
        if is_over:
            logger.warning("credentials have already expired: source=%s", self._command.name)
        elif before is not None and is_new:
            logger.info("credentials renewed: source=%s", self._command.name)

    def _fail(self, error: CredentialsError) -> None:
        if self._failure is None and self._cached is not None:
            logger.warning("cannot renew credentials: error=%s", error)
        self._failure, self._last_run_at = error, self._clock.monotonic()

    def _with_current_files(self, cached: _CachedCredential, now: int) -> _CachedCredential:
        """Rebuild the credential if the CA files have changed."""
        self._reloaded_at = self._clock.monotonic()
        if self._tls.context(now) is not cached.base:
            self._cached = cached = self._build(cached.credential, now)
        return cached

    def _build(self, credential: PluginCredential, now: int) -> _CachedCredential:
        base = self._tls.context(now)
        pair = self._key_pair(credential)
        try:
            tls = base if pair is None else self._context(pair, credential, base)
            expires = credential.expires
            if expires is None and pair is not None:
                expires = pair.expires()
        except UnusableTlsError as error:
            raise CredentialsError(f"{self._command.name} failed: {error}") from error
        authorization = f"Bearer {credential.token}" if credential.token else None
        before = Credentials() if self._cached is None else self._cached.credentials
        return _CachedCredential(
            credential=credential,
            credentials=before.updated(authorization, tls),
            base=base,
            expires=expires,
            renew_at=None if expires is None else _renew_at(expires, now),
        )

    def _key_pair(self, credential: PluginCredential) -> KeyPair | None:
        if not credential.certificate:
            return None
        certificate = Pem(field="its clientCertificateData", data=credential.certificate)
        key = Pem(field="its clientKeyData", data=credential.key)
        return KeyPair(
            PemContent(certificate, credential.certificate), PemContent(key, credential.key)
        )

    def _context(
        self, pair: KeyPair, credential: PluginCredential, base: ssl.SSLContext
    ) -> ssl.SSLContext:
        """Return the cached context for the same certificate, so that connections are reused."""
        cached = self._cached
        if cached is not None and cached.base is base and cached.credentials.tls is not None:
            before = cached.credential
            if (before.certificate, before.key) == (credential.certificate, credential.key):
                return cached.credentials.tls
        return self._tls.context_for(pair)


def _renew_at(expires: int, now: int) -> int:
    """Renew 30 s before expiry, or after 80 % of the remaining lifetime if that is later.

    So a plugin that keeps returning a nearly expired token is not run in a loop.
    """
    return expires - min(_RENEW_BEFORE_NS, max(0, expires - now) // 5)
