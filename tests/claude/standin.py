"""A program that misbehaves on demand, for faults that the real CLI does not produce: ``standin.py FAULT [ARGUMENT]``.

Run as a process by the tests of claude.process. Prints events in the CLI's form and then goes wrong in one way.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

FOREVER = 600


def say(**event: object) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def put(raw: bytes) -> None:
    sys.stdout.buffer.write(raw)
    sys.stdout.buffer.flush()


def init() -> None:
    say(type="system", subtype="init", session_id="s1", model="m", tools=[], cwd="/", claude_code_version="1")


def result(**more: object) -> None:
    say(type="result", subtype="success", is_error=False, session_id="s1", result="done", **more)


def retry(status: int | None, error: str, delay_ms: int) -> None:
    say(
        type="system",
        subtype="api_retry",
        attempt=1,
        max_retries=10,
        retry_delay_ms=delay_ms,
        error_status=status,
        error=error,
    )


def background(*, clear: bool, apart: bool) -> int:
    """A sleeper without pipes; ``clear`` takes its environment away, ``apart`` gives it a session of its own."""
    quiet = subprocess.DEVNULL
    sleeper = [sys.executable, "-c", f"import time; time.sleep({FOREVER})"]
    env = {} if clear else None
    return subprocess.Popen(sleeper, stdin=quiet, stdout=quiet, stderr=quiet, env=env, start_new_session=apart).pid


def fine() -> None:
    init()
    result(echo=sys.argv[2:])


def echo() -> None:
    """Say what came in on stdin."""
    init()
    say(type="result", subtype="success", is_error=False, result=PROMPT)


def garbage() -> None:
    put(b'not json\n[1, 2]\n\xff\xfe\xfa\n{"type": "nonsense"}\n\n{"type": "ass')


def no_result() -> None:
    init()
    sys.stderr.buffer.write(b"x" * 20_000 + b"the last words \xff")
    sys.exit(3)


def huge_line() -> None:
    init()
    put(b'{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"')
    for _ in range(100):
        put(b"y" * 1024 * 1024)
    put(b'","is_error":true,"tool_use_id":"toolu_big"}]},"parent_tool_use_id":null}\n')
    result()


def unfinished_line() -> None:
    init()
    put(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "no line feed"}).encode())


def mute() -> None:
    time.sleep(FOREVER)


def falls_silent() -> None:
    init()
    time.sleep(FOREVER)


def babbles() -> None:
    init()
    while True:
        say(type="tool_progress")
        time.sleep(0.02)


def lingers() -> None:
    init()
    result()
    time.sleep(FOREVER)


def deaf() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    init()
    time.sleep(FOREVER)


def last_words() -> None:
    """Like the real one: asked to stop, it still says what it has used."""
    # Waited for and not handled: a handler could cut into the very write that makes the test send the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    init()
    signal.sigwait({signal.SIGINT})
    result(total_cost_usd=0.5)


def refused_key() -> None:
    init()
    for _ in range(10):
        retry(401, "authentication_failed", 10)
        time.sleep(0.05)
    time.sleep(FOREVER)


def overloaded() -> None:
    init()
    while True:
        retry(529, "overloaded", 50)
        time.sleep(0.05)


def leaves_children() -> None:
    """Start one of each kind, the last by way of a parent that is gone at once; then exit, or stay."""
    init()
    pids = [
        background(clear=False, apart=False),
        background(clear=False, apart=True),
        background(clear=True, apart=True),
    ]
    read, write = os.pipe()
    if (middle := os.fork()) == 0:
        os.setsid()
        os.write(write, str(background(clear=True, apart=True)).encode())
        os._exit(0)
    os.waitpid(middle, 0)
    pids.append(int(os.read(read, 20)))
    say(type="assistant", message={"id": "m1", "content": json.dumps(pids)})
    if "stay" in sys.argv:
        time.sleep(FOREVER)
    result()


def pipe_holder() -> None:
    """Exit while a grandchild in another session still holds, and uses, our stdout."""
    init()
    noise = 'import time\nwhile True: print(\'{"type": "tool_progress"}\', flush=True); time.sleep(0.01)'
    subprocess.Popen([sys.executable, "-c", noise], stdin=subprocess.DEVNULL, start_new_session=True)
    result()


def flood() -> None:
    init()
    line = json.dumps({"type": "tool_progress", "filling": "z" * 1000}).encode() + b"\n"
    while True:
        put(line * 100)


FAULTS: dict[str, Callable[[], None]] = {
    f.__name__: f
    for f in (
        *(fine, echo, garbage, no_result, huge_line, unfinished_line, mute, falls_silent, babbles, lingers, deaf),
        *(last_words, refused_key, overloaded, leaves_children, pipe_holder, flood),
    )
}

if __name__ == "__main__":
    # Like the real one, it does nothing before its whole prompt is there.
    PROMPT = sys.stdin.read()
    FAULTS[sys.argv[1]]()
