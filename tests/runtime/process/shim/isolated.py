"""Launch records of isolated containers."""

from tests.runtime.process.shim_on_trial import needs_bubblewrap

SANDBOX = (
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--unshare-pid",
    "--as-pid-1",
    "--die-with-parent",
)


SETSID = "/usr/bin/setsid"


def isolated(*arguments: str) -> dict[str, object]:
    return {"bubblewrap": (needs_bubblewrap(), *SANDBOX, *arguments), "cwd": ""}
