"""The examples of a page, run as a reader runs them, from the first to the last.

What is run, in the order of the page:

- A block below a sentence that ends with "`NAME`:" is the file NAME; a NAME with a slash is a file
  of the checkout, which must have this content.
- In a `console` block, lines that begin with `$ ` are commands; a backslash at the end continues
  them. The lines below a command are its output. `^C` on a line of its own is pressed as soon as
  the lines above it are on the screen.
- A `console` block below `<!-- terminal 1 -->` is typed in that terminal, where the last command
  goes on while the rest of the page is run, until `^C` is the first line of a later such block.
- A `python` block that is no file is a program; a `text` block below it is its output.
- Blocks of other languages are only read.

A command that only reads (READS) is repeated until it shows what the page shows: a reader does the
same. All commands share a directory and the environment variables of the main terminal.

What may differ from the page (`normalize`): times, ages, ports and that they are in use, IDs,
addresses, restart counts with an age, the width of columns and rules, and the bars of a chart. `…`
on the page stands for any text in its line, or on a line of its own for any number of lines.
"""

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

SECONDS = 120.0
"""For what takes one or two, on a busy machine."""
COLUMNS = 100
_ON_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp("bash", ["bash", "-c", sys.argv[1]])
"""
"""Runs the reader's shell on the terminal of its standard input, so that Ctrl-C signals its job."""
CHECKOUT = "/home/me/podstatus"
"""The directory of the reader on all pages."""
CTRL_C = "^C"
READS = re.compile(
    r"(\S*podstatus (get|describe|timeline|logs|alerts) |kubectl (get|logs) "
    r"|python (unhealthy.py|examples/batch_system.py \S+ status)$)"
)

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w./-]+)`:\s*\Z")
_TERMINAL = re.compile(r"<!-- terminal (\d) -->\s*\Z")
_UNIT = r"\d+(?:\.\d+)? ?(?:ms|min|s|m|h|d)(?![a-z])"
_VOLATILE = [
    (re.compile(pattern), name)
    for pattern, name in (
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (r"\b\d\d:\d\d:\d\d(\.\d+)?\b", "<time>"),
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uid>"),
        (r"\b[0-9a-f]{12,}\b", "<id>"),
        (r"\b127\.0\.0\.1:\d+\b", "127.0.0.1:<port>"),
        (r"(?m)^port \d+ is in use \(--[\w-]+\); a free one is used instead\n", ""),
        (r"\b(?!127\.)\d+\.\d+\.\d+\.\d+\b", "<ip>"),
        (rf"\b{_UNIT}(?: ?{_UNIT})*", "<age>"),
        (r"\b\d+ \(<age> ago\)", "<restarts>"),
        (r"\(x\d+ over <age>\)", "(x<n> over <age>)"),
        (r"={3,}", "==="),
        (r"[ \t]+", " "),
        (r"(?:(?:<time>|╷) ?)+(?=\n|\Z)", "<axis>"),
    )
]
_CHART = re.compile("[█░▒▓─↻•]")
_ELLIPSIS = "…"


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str
    file: str
    """The name of the file that it is; empty for any other block."""
    terminal: str = ""
    """The number of the terminal where it is typed; empty for the reader's main one."""


class Step(NamedTuple):
    """A command and the output that the page shows for it."""

    command: str
    output: str


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    found = []
    end = 0
    for fence in _FENCE.finditer(page):
        above = page[end : fence.start()].rstrip()
        named = _FILE.search(above)
        number = _TERMINAL.search(above)
        found.append(
            Block(fence[1], fence[2], named[1] if named else "", number[1] if number else "")
        )
        end = fence.end()
    return found


def steps(console: str) -> list[Step]:
    """Return the commands of a console block, each with the lines below it.

    The lines above the first one belong to a command of an earlier block, here an empty one.
    """
    found = [Step("", "")]
    for line in console.splitlines():
        if line.startswith("$ "):
            found.append(Step(line.removeprefix("$ "), ""))
        elif found and found[-1].command.endswith("\\") and not found[-1].output:
            found[-1] = Step(f"{found[-1].command}\n{line}", "")
        else:
            found[-1] = Step(found[-1].command, f"{found[-1].output}{line}\n")
    return [step for step in found if step != Step("", "")]


def normalize(text: str) -> str:
    """Return the text without what differs from run to run."""
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    lines = [_without_bars(line).rstrip() for line in text.strip().splitlines()]
    return "\n".join(lines)


def _without_bars(line: str) -> str:
    """Return the name of a chart's row; other lines unchanged."""
    if line.startswith("<time>") or not _CHART.search(line):
        return line
    return " ".join(_CHART.sub(" ", line).split()[:1])


def shows(shown: str, page: str, *, whole: bool = True) -> bool:
    """Whether the output is that of the page; or, unless `whole`, begins with it."""
    pattern = ""
    for line in normalize(page).splitlines():
        if line == _ELLIPSIS:
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(map(re.escape, line.split(_ELLIPSIS))) + r"\n"
    shown = normalize(shown) + "\n" if shown.strip() else ""
    match = re.fullmatch if whole else re.match
    return match(pattern, shown) is not None


class Terminal:
    """A command on a terminal of its own, and what it has written there."""

    def __init__(
        self, command: str, script: str, *, directory: Path, environment: Mapping[str, str]
    ) -> None:
        """The script is what the shell runs when the reader types the command."""
        self.command = command
        self._directory = directory
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
        modes = termios.tcgetattr(theirs)
        modes[3] &= ~termios.ECHO  # pages show what commands write, not what is typed
        termios.tcsetattr(theirs, termios.TCSANOW, modes)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _ON_TERMINAL, script],
            cwd=directory,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        self._terminal = os.fdopen(ours, "r+b", buffering=0)
        self._written = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def screen(self) -> str:
        """What is on the screen, as if the reader's checkout were the directory."""
        written = self._written.decode(errors="replace").replace("\r\n", "\n")
        return written.replace(str(self._directory), CHECKOUT)

    def wait_until_it_shows(self, page: str) -> None:
        """Wait until the screen begins with the output of the page."""
        end = time.monotonic() + SECONDS
        while True:
            has_ended = not self._reader.is_alive()
            if shows(self.screen, page, whole=False):
                return
            if has_ended or time.monotonic() > end:
                raise AssertionError(difference(self.command, page, self.screen))
            self._reader.join(0.05)

    def interrupt(self) -> str:
        """Press Ctrl-C, and wait for the end; return what was written meanwhile."""
        before = len(self.screen)
        with contextlib.suppress(OSError):  # the command has just ended
            self._terminal.write(b"\x03")
        self.wait()
        return self.screen[before:]

    def wait(self) -> int:
        """Wait for the end; return the exit code."""
        code = self._process.wait(SECONDS)
        self._reader.join(SECONDS)
        self._terminal.close()
        return code

    def close(self) -> None:
        """End the command if it still runs."""
        if self._process.poll() is None:
            try:
                self.interrupt()
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
        self.wait()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := self._terminal.read(65536):
                self._written += piece


def difference(command: str, page: str, shown: str) -> str:
    """Return a message with what the page shows and what was shown."""
    return f"$ {command}\n--- the page\n{page}\n--- the screen\n{shown}"


class Reader:
    """Follows a page in a directory."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._directory = directory
        self._variables = directory / ".variables"
        self._variables.write_text("")
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            **environment,
        }
        self._terminals: dict[str, Terminal] = {}
        """The terminals with a command that goes on, by number."""

    def follow(self, page: str) -> None:
        """Run all examples of a page. Raises AssertionError at the first that differs."""
        try:
            expected = iter([*blocks(page), None])
            block = next(expected)
            while block is not None:
                following = next(expected)
                self._follow(block, following)
                block = following
        finally:
            for terminal in reversed(self._terminals.values()):
                terminal.close()

    def _follow(self, block: Block, following: Block | None) -> None:
        if block.file:
            self._save(block)
        elif block.language == "python":
            is_output = following is not None and following.language == "text"
            self._run_program(block.text, following.text if following and is_output else "")
        elif block.language == "console":
            for step in steps(block.text):
                if block.terminal:
                    self._type_in_terminal(block.terminal, step)
                else:
                    self._type(step)

    def _save(self, block: Block) -> None:
        path = self._directory / block.file
        if "/" in block.file:
            assert path.read_text() == block.text, f"the page shows another {block.file}"
        else:
            path.write_text(block.text)

    def _run_program(self, program: str, output: str) -> None:
        (self._directory / ".program.py").write_text(program)
        terminal = self._start(f"{sys.executable} .program.py")
        assert terminal.wait() == 0, terminal.screen
        assert shows(terminal.screen, output), difference(program, output, terminal.screen)

    def _type(self, step: Step) -> None:
        if f"\n{CTRL_C}\n" in f"\n{step.output}":
            self._interrupt(step)
        else:
            self._run(step)

    def _type_in_terminal(self, number: str, step: Step) -> None:
        """Start a command that goes on, or end the one that runs there."""
        if step.command:
            terminal = self._terminals[number] = self._start(step.command, is_main=False)
            terminal.wait_until_it_shows(step.output)
        else:
            first, _, after = step.output.partition("\n")
            assert first == CTRL_C, f"{first!r} is no output of a command of this block"
            shown = self._terminals.pop(number).interrupt()
            assert shows(shown, after), difference(CTRL_C, after, shown)

    def _run(self, step: Step) -> None:
        """Run a command that ends; one that only reads as often as it takes."""
        end = time.monotonic() + (SECONDS if READS.match(step.command) else 0)
        while True:
            terminal = self._start(step.command)
            code = terminal.wait()
            if shows(terminal.screen, step.output):
                assert step.output or code == 0, f"$ {step.command}: exit code {code}"
                return
            message = difference(step.command, step.output, terminal.screen)
            assert time.monotonic() < end, message

    def _interrupt(self, step: Step) -> None:
        before, _, after = f"\n{step.output}".partition(f"\n{CTRL_C}\n")
        terminal = self._start(step.command)
        try:
            terminal.wait_until_it_shows(before)
        finally:
            shown = terminal.interrupt()
        assert after.strip() in shown, difference(CTRL_C, after, shown)

    def _start(self, command: str, *, is_main: bool = True) -> Terminal:
        """Start a command with the variables that earlier ones of the main terminal exported."""
        variables = self._variables
        script = f". {variables}\n{command}"
        if is_main:
            script += (
                f"\ncode=$?\nexport -p > {variables}.new && mv {variables}.new {variables}"
                "\nexit $code"
            )
        return Terminal(command, script, directory=self._directory, environment=self._environment)
