"""Signals that wake a poll on file descriptors and are never lost."""

import os
import select
import signal
from types import FrameType


class SignalQueue:
    """Received signals. At most one instance per process."""

    def __init__(self, *numbers: signal.Signals) -> None:
        self._numbers = numbers
        self._pending: set[int] = set()
        self.file, self._wakeup_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        """Readable when signals are pending."""

    def start(self) -> None:
        """Handle signals from now on, including those that were blocked and pending."""
        signal.set_wakeup_fd(self._wakeup_fd, warn_on_full_buffer=False)
        for number in self._numbers:
            signal.signal(number, self._on_signal)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def take(self) -> set[int]:
        """Return the signals received since the last call."""
        try:
            while os.read(self.file, 4096):
                pass
        except BlockingIOError:
            pass
        received, self._pending = self._pending, set()
        return received

    def wait(self, seconds: float) -> None:
        """Return when a signal is received, or after `seconds`."""
        poll = select.poll()
        poll.register(self.file, select.POLLIN)
        poll.poll(seconds * 1000)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._pending.add(number)


def restore_defaults() -> None:
    """Reset all signals to their defaults, including those that Python ignores."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) not in (signal.SIG_DFL, None):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
