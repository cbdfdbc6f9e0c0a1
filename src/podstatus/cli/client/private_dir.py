"""Whether the files of a root directory can be trusted."""

import os
from contextlib import suppress
from pathlib import Path
from stat import S_IRWXG, S_IRWXO, S_ISDIR, S_ISREG, S_IWGRP, S_IWOTH

from podstatus.agent.daemon.endpoints_file import ENDPOINTS_FILE
from podstatus.apiserver.state_dir import LOCK_FILE

START_FILE = "start.json"
"""How the agent was last started."""


def is_private(folder: Path) -> bool:
    """True if only this user can have written what a root directory has, and no link is in it.

    The current directory may be a clone of a foreign repository or a shared directory: its files
    could name a server, or a kubeconfig with an exec plugin, and its lock could be a link to a file
    that another process has locked.
    """
    try:
        folder_status = folder.lstat()
        files = [(folder / LOCK_FILE).lstat()]
        for name in (ENDPOINTS_FILE, START_FILE):
            with suppress(FileNotFoundError):  # the agent is starting, or has stopped
                files.append((folder / name).lstat())
    except OSError:
        return False
    return (
        S_ISDIR(folder_status.st_mode)
        and all(S_ISREG(file.st_mode) and file.st_nlink == 1 for file in files)
        # Another user could lock a lock file that it can read.
        and not any(file.st_mode & (S_IRWXG | S_IRWXO) for file in files)
        and all(_is_only_ours(status) for status in (folder_status, *files))
    )


def _is_only_ours(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & (S_IWGRP | S_IWOTH)
