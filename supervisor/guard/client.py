"""Ask the supervisor about one tool call. The program that a CLI's hook starts; nothing in the package imports it.

Started as ``python -I -S client.py SOCKET SECRETFILE SECONDS`` with the hook's JSON on stdin. Whatever goes wrong is
printed as a refusal and ends with exit code 2, the one code on which every CLI holds the call back. It runs once for
each call, so it takes the modules that are built in rather than their comfortable wrappers: importing ``socket`` alone
doubles its time.
"""

import posix
import sys
import time
from _socket import AF_UNIX, SOCK_STREAM, socket

_MOST_INPUT = 16 * 1024 * 1024
_MOST_ANSWER = 1024 * 1024
_CHUNK = 1024 * 1024
_ANSWER_START = b'{"hookSpecificOutput":'
_REFUSAL = (
    b'{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"%s"}}'
)


class Refused(Exception):
    """Why there is no answer."""


def ask(socket_path: str, secret_file: str, seconds: str) -> bytes:
    """The supervisor's answer to the question on stdin."""
    deadline = time.monotonic() + float(seconds)
    secret = _read_all(posix.open(secret_file, posix.O_RDONLY), 1024)
    question = _read_all(0, _MOST_INPUT)
    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.settimeout(_left(deadline))
    connection.connect(socket_path)
    connection.sendall(b"%s %d\n" % (secret, len(question)))
    connection.sendall(question)
    received = b""
    while part := connection.recv(_CHUNK):
        received += part
        if len(received) > _MOST_ANSWER:
            raise Refused("its answer has no end")
        connection.settimeout(_left(deadline))
    return _checked(received)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _read_all(descriptor: int, most: int) -> bytes:
    parts = []
    size = 0
    while part := posix.read(descriptor, _CHUNK):
        size += len(part)
        if size > most:
            raise Refused(f"there is more to read than {most} bytes")
        parts.append(part)
    return b"".join(parts)


def _checked(received: bytes) -> bytes:
    """The answer without its frame: a supervisor that dies in the middle of its answer has not answered."""
    size, _, answer = received.partition(b"\n")
    if not received:
        raise Refused("it broke off before its answer")
    if size != b"%d" % len(answer):
        raise Refused("its answer is not whole")
    if not answer.startswith(_ANSWER_START):
        raise Refused("its answer is not a decision")
    return answer


def _write_all(descriptor: int, text: bytes) -> None:
    while text:
        text = text[posix.write(descriptor, text) :]


def _plain(text: str) -> bytes:
    """The text as it can stand in JSON without the module for it."""
    return "".join(c if c.isprintable() and c not in '"\\\\' else " " for c in text).encode("ascii", "replace")


def _why(problem: BaseException) -> str:
    match problem:
        case Refused():
            return str(problem)
        case TimeoutError():
            return "it did not answer in time"
        case OSError():
            return f"there is nobody to ask ({problem.strerror})"
        case _:
            return f"{type(problem).__name__}: {problem}"


if __name__ == "__main__":
    code = 2
    try:
        answer = ask(*sys.argv[1:])
    except BaseException as problem:  # noqa: BLE001 - there is no failure on which a call may run
        why = f"This call is refused, because the guard could not be asked: {_why(problem)}."
        _write_all(1, _REFUSAL % _plain(why))
    else:
        _write_all(1, answer)
        code = 0
    finally:
        # Without the interpreter's own tidying up, which takes longer than the question.
        posix._exit(code)  # noqa: SLF001 - os._exit, without importing os
