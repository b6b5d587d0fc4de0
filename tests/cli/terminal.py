"""A terminal just good enough to tell what a person sees of a program that redraws in place. Does I/O on a pty."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SEQUENCE = re.compile(r"\x1b\[(\??)([\d;]*)([A-Za-z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What came through the terminal, and what stands on it (with what has scrolled away above it) at the end."""

    exit_code: int
    raw: str
    lines: tuple[str, ...]

    @property
    def screen(self) -> str:
        return "\n".join(self.lines)


def run_on_terminal(
    command: Sequence[str], *, size: tuple[int, int], env: Mapping[str, str], cwd: Path, deadline_seconds: float = 60.0
) -> Seen:
    """Run a command on a terminal of its own of so many columns and rows."""
    columns, rows = size
    ours, theirs = pty.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=cwd)
        os.close(theirs)
        try:
            raw = _read_all(ours)
            exit_code = process.wait(deadline_seconds)
        finally:
            process.kill()
            process.wait()
    finally:
        os.close(ours)
    return Seen(exit_code=exit_code, raw=raw, lines=tuple(drawn(raw, columns)))


def _read_all(descriptor: int) -> str:
    chunks = []
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:
            # How Linux says that nobody has the other end open any more.
            break
        if not chunk:
            break
        chunks.append(chunk)
    return b"".join(chunks).decode()


def drawn(raw: str, columns: int) -> list[str]:
    """The lines that stand after everything was drawn. Fails on a sequence it does not know."""
    lines, row, column, position = [""], 0, 0, 0
    while position < len(raw):
        match = _SEQUENCE.match(raw, position)
        if match:
            position = match.end()
            private, numbers, kind = match.groups()
            if kind == "A":
                row = max(0, row - int(numbers or 1))
            elif kind == "K" and numbers == "2":
                lines[row] = ""
            elif kind != "m" and not (private and kind in "hl"):
                raise AssertionError(f"the terminal does not know {match.group()!r}")
            continue
        character = raw[position]
        position += 1
        if character == "\r":
            column = 0
            continue
        if character != "\n" and column < columns:
            lines[row] = lines[row].ljust(column)[:column] + character + lines[row][column + 1 :]
            column += 1
            continue
        row += 1
        if row == len(lines):
            lines.append("")
        # The line discipline sends a carriage return with each line feed; a full line goes on in the next.
        column = 0
        if character != "\n":
            lines[row] = character + lines[row][1:]
            column = 1
    return [line.rstrip() for line in lines]
