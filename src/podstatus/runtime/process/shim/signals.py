"""Signals that wake a wait on files, and are never lost."""

import os
import select
import signal
from types import FrameType


class SignalQueue:
    """Signals that came in. One of these in a process."""

    def __init__(self, *numbers: signal.Signals) -> None:
        self._numbers = numbers
        self._pending: set[int] = set()
        self.file, self._wakeup_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        """Readable when there are any."""

    def start(self) -> None:
        """Take them from here on, and those that waited meanwhile."""
        signal.set_wakeup_fd(self._wakeup_fd, warn_on_full_buffer=False)
        for number in self._numbers:
            signal.signal(number, self._on_signal)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def take(self) -> set[int]:
        """Those that came since the last time."""
        try:
            while os.read(self.file, 4096):
                pass
        except BlockingIOError:
            pass
        came, self._pending = self._pending, set()
        return came

    def wait(self, seconds: float) -> None:
        """Return when any has come, or when so much time has passed."""
        poll = select.poll()
        poll.register(self.file, select.POLLIN)
        poll.poll(seconds * 1000)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._pending.add(number)


def restore_defaults() -> None:
    """Everything as a program expects to find it, also what Python itself ignores."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) not in (signal.SIG_DFL, None):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
