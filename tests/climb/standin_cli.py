"""A program that passes for a Claude CLI and then goes wrong as told. Run as a process by the tests of climb.

``STANDIN`` names what to do, one word per tier, the last one for all above; ``STANDIN_LACKS`` names options that its
``--help`` leaves out. Each run adds its command line to ``argv.jsonl`` in its working directory.

``climbs`` and ``mends`` also keep a transcript, resume one, and never do again what their conversation or their prompt
speaks of: a model that heeds what it is told. What they did and said is in ``ran.jsonl`` and ``said.jsonl``.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

FOREVER = 600
STEPS = 2
# What one message costs, by the price of the model it names.
MESSAGE_USD = 0.00105
OTHER_ID = "0123abcd-0000-4000-8000-00000000beef"
OPTIONS = (
    *("--print", "--output-format", "--resume", "--fork-session", "--session-id", "--tools", "--json-schema"),
    *("--system-prompt", "--append-system-prompt", "--setting-sources", "--settings", "--strict-mcp-config"),
)
HEALTHY = {"summary": "web is healthy", "escalation": {"needed": False}}
NEEDS = {
    "summary": "web is down",
    "services": [{"name": "web", "status": "down"}],
    "escalation": {"needed": True, "reason": "web stays down"},
}
# Too large for a handoff, however it is cut: every name counts.
SPRAWLING = {**NEEDS, "services": [{"name": f"{n:03d}" + "x" * 1000, "status": "down"} for n in range(300)]}


def put(raw: bytes) -> None:
    sys.stdout.buffer.write(raw)
    sys.stdout.buffer.flush()


def say(**event: object) -> None:
    put(json.dumps(event).encode() + b"\n")


def init(session_id: str | None) -> None:
    named = {} if session_id is None else {"session_id": session_id}
    say(type="system", subtype="init", model="claude-haiku-4-5", tools=["Bash"], cwd=str(Path.cwd()), **named)


def message(number: int, *content: object) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 10}
    body = {"id": f"msg_{number}", "model": "claude-haiku-4-5", "role": "assistant", "usage": usage}
    say(type="assistant", message={**body, "content": list(content)}, parent_tool_use_id=None)


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def call(number: int, **given: object) -> dict[str, object]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": given}


def ask(number: int | str, command: str) -> None:
    """Ask the hook as a CLI does, and give up on anything but leave."""
    given = json.loads(ARGUMENTS[ARGUMENTS.index("--settings") + 1])
    hook = given["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    question = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": f"toolu_{number}"}
    question["tool_input"] = {"command": command}
    said = subprocess.run(["sh", "-c", hook], input=json.dumps(question).encode(), capture_output=True, check=False)
    if b'"permissionDecision":"allow"' not in said.stdout:
        sys.exit(f"refused: {said.stdout!r} {said.stderr!r}")


def answer(number: int, output: str) -> None:
    block = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": output, "is_error": False}
    say(type="user", message={"role": "user", "content": [block]}, parent_tool_use_id=None)


def result(session_id: str | None, report: object = None, **more: object) -> None:
    named = {} if session_id is None else {"session_id": session_id}
    end = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 2, "result": "", **named}
    say(**{**end, "total_cost_usd": 0.01, "structured_output": report, **more})


def work(session_id: str | None) -> None:
    init(session_id)
    message(1, text("I look."), call(1, command="echo looked"))
    ask(1, "echo looked")
    answer(1, "looked")


def healthy() -> None:
    work(OWN_ID)
    result(OWN_ID, HEALTHY)


def needs() -> None:
    work(OWN_ID)
    result(OWN_ID, NEEDS)


def takes_itself_away() -> None:
    Path(os.environ["STANDIN_PATH"]).unlink()
    needs()


def needs_and_spoils() -> None:
    """Meanwhile somebody edits the prompt of the next tier."""
    Path("../prompts/tier2.md").write_text("{{ nobody_knows_this }}")
    needs()


def needs_and_fills() -> None:
    """Takes all the room beside its supervisor's state."""
    work(OWN_ID)
    with (Path(os.environ["CLAUDEOPS_STATE_DIR"]) / "filling").open("wb", buffering=0) as file:
        for size in (65536, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
    # More than the room that comes free when the stream of this run is removed.
    for number in range(2, 22):
        message(number, text(f"finding {number} " + "z" * 1900))
    result(OWN_ID, NEEDS)


def sprawls() -> None:
    work(OWN_ID)
    result(OWN_ID, SPRAWLING)


def garbage() -> None:
    put(b"not json\n[1, 2]\n\xff\xfe\xfa\n\n")
    init(OWN_ID)
    put(b'{"type": "nonsense"}\n{"type": "assistant", "message": 7}\n{"type": "assistant", "message": {"content": [')
    put(b'{"type": "text", "text": "half \xe2\x82 a euro"}]}}\n')
    result(OWN_ID, HEALTHY)


def only_garbage() -> None:
    put(b"Welcome to the shell.\nuser@host:~$ ")


def huge_line() -> None:
    work(OWN_ID)
    ask("big", "echo y")
    put(b'{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"')
    for _ in range(100):
        put(b"y" * 1024 * 1024)
    put(b'","is_error":false,"tool_use_id":"toolu_big"}]},"parent_tool_use_id":null}\n')
    result(OWN_ID, HEALTHY)


def no_line_feed() -> None:
    work(OWN_ID)
    end = {"type": "result", "subtype": "success", "is_error": False, "session_id": OWN_ID}
    put(json.dumps({**end, "structured_output": HEALTHY, "total_cost_usd": 0.01}).encode())


def nameless() -> None:
    """Never says who it is."""
    work(None)
    result(None, NEEDS)


def another_id() -> None:
    work(OTHER_ID)
    result(OTHER_ID, NEEDS)


def hostile_id() -> None:
    """Says an id that would be an option, a pattern and a path."""
    work("--dangerously-skip-permissions")
    result("../**/../x", NEEDS)


def no_result() -> None:
    work(OWN_ID)
    sys.stderr.write("out of cheese")
    sys.exit(3)


def no_report() -> None:
    work(OWN_ID)
    result(OWN_ID, result="All is well, I think.")


def bad_report() -> None:
    fenced = json.dumps({"summary": "x", "services": [{"name": "web", "status": "so-so"}]})
    work(OWN_ID)
    result(OWN_ID, result=f"Done.\n```json\n{fenced}\n```")


def deep() -> None:
    """A tool call nested as deeply as a parser takes it, and deeper than most stacks do."""
    work(OWN_ID)
    for number, depth in enumerate((60, 400, 700, 940), start=2):
        nested = "[" * depth + "]" * depth
        block = f'{{"type": "tool_use", "id": "toolu_{number}", "name": "Odd", "input": {{"deep": {nested}}}}}'
        put(f'{{"type": "assistant", "message": {{"id": "msg_{number}", "content": [{block}]}}}}\n'.encode())
    result(OWN_ID, HEALTHY)


def babbles() -> None:
    """Says a lot in many messages."""
    work(OWN_ID)
    for number in range(2, 5000):
        message(number, text(f"word {number}"))
    result(OWN_ID, HEALTHY)


def killed() -> None:
    work(OWN_ID)
    os.kill(os.getpid(), signal.SIGKILL)


def busy() -> None:
    """Works on with two tools, one of them in a session of its own, until it is told to finish or ended."""
    work(OWN_ID)
    message(2, text("I wait."), call(2, command="sleep 1"))
    ask(2, "sleep 1")
    quiet = subprocess.DEVNULL
    sleeper = ["sleep", str(FOREVER)]
    subprocess.Popen(sleeper, stdin=quiet, stdout=quiet, stderr=quiet)
    subprocess.Popen(sleeper, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    Path("reached").touch()
    while not Path("go").exists():
        time.sleep(0.01)
    answer(2, "waited")
    message(3, text("I saw enough."))
    result(OWN_ID, HEALTHY)


def deaf() -> None:
    """Works on whatever signal it gets, until it is told to finish."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    busy()


def bypasses() -> None:
    """Runs a tool without asking, and would go on to the next."""
    init(OWN_ID)
    message(1, text("I act."), call(1, command="touch first"))
    Path("first").touch()
    answer(1, "done")
    time.sleep(FOREVER)
    message(2, text("Again."), call(2, command="touch second"))
    Path("second").touch()
    answer(2, "done")
    result(OWN_ID, HEALTHY)


def bypasses_and_leaves() -> None:
    """Runs a tool without asking, and is done before anybody can do something about it."""
    init(OWN_ID)
    message(1, text("I act."), call(1, command="touch first"))
    answer(1, "done")
    result(OWN_ID, HEALTHY)


def heeds_nothing() -> None:
    """Asks, is refused, and goes ahead."""
    init(OWN_ID)
    message(1, text("I act."), call(1, command="touch first"))
    with contextlib.suppress(SystemExit):
        ask(1, "touch first")
    answer(1, "done")
    time.sleep(FOREVER)


def chatters() -> None:
    """Speaks again and again until it is told to finish."""
    work(OWN_ID)
    Path("reached").touch()
    for number in range(2, 100_000):
        message(number, text(f"word {number} " + "z" * 2000))
        time.sleep(0.01)
        if Path("go").exists():
            break
    Path("said").write_text(str(number))
    result(OWN_ID, HEALTHY)


def log(file: str, **entry: object) -> None:
    with Path(file).open("a") as kept:
        kept.write(json.dumps({"session": OWN_ID, **entry}) + "\n")


def conversation() -> Path:
    """The transcript of this session, which begins with that of the session it resumes."""
    projects = Path.home() / ".claude" / "projects" / "p"
    projects.mkdir(parents=True, exist_ok=True)
    own = projects / f"{OWN_ID}.jsonl"
    before = ""
    if "--resume" in ARGUMENTS:
        resumed = ARGUMENTS[ARGUMENTS.index("--resume") + 1]
        try:
            before = (projects / f"{resumed}.jsonl").read_text()
        except FileNotFoundError:
            unknown = f"No conversation found with session ID: {resumed}"
            say(type="result", subtype="error_during_execution", is_error=True, num_turns=0, errors=[unknown])
            sys.exit(unknown)
    own.write_text(before + json.dumps({"prompt": PROMPT}) + "\n")
    return own


def steps(report: object) -> None:
    """Do every step of the tier that nothing speaks of yet. Like the real one, write down a call once it is over."""
    transcript = conversation()
    known = transcript.read_text()
    init(OWN_ID)
    said = 0
    for number in range(1, STEPS + 1):
        step = f"step-{os.environ['CLAUDEOPS_TIER']}-{number}"
        if step in known:
            continue
        said += 1
        log("said.jsonl", message=said)
        message(said, text("I look."), call(said, command=f"echo {step}"))
        ask(said, f"echo {step}")
        log("ran.jsonl", step=step)
        answer(said, "done")
        with transcript.open("a") as kept:
            kept.write(json.dumps({"role": "assistant", "done": step}) + "\n")
    said += 1
    log("said.jsonl", message=said)
    message(said, text("I report."))
    result(OWN_ID, report, total_cost_usd=said * MESSAGE_USD)


def climbs() -> None:
    steps(NEEDS)


def mends() -> None:
    steps(HEALTHY)


WAYS: dict[str, Callable[[], None]] = {
    way.__name__: way
    for way in (
        *(healthy, needs, needs_and_fills, needs_and_spoils, takes_itself_away, sprawls, garbage, only_garbage),
        *(huge_line, no_line_feed),
        *(nameless, another_id, hostile_id, no_result, no_report, bad_report, deep, babbles, killed, busy, chatters),
        *(bypasses, bypasses_and_leaves, heeds_nothing, deaf, climbs, mends),
    )
}

if __name__ == "__main__":
    arguments = ARGUMENTS = sys.argv[1:]
    if arguments == ["--version"]:
        print("2.1.225 (Claude Code)")
    elif arguments == ["--help"]:
        lacking = os.environ.get("STANDIN_LACKS", "").split()
        print("Usage: claude [options]\n", *(f"  {o}  an option" for o in OPTIONS if o not in lacking), sep="\n")
    else:
        named = "--session-id" in arguments
        OWN_ID = arguments[arguments.index("--session-id") + 1] if named else str(uuid.uuid4())
        # Like the real one, it does nothing before its whole prompt is there, and nothing without one.
        PROMPT = sys.stdin.read()
        if PROMPT.strip():
            with Path("argv.jsonl").open("a") as file:
                file.write(json.dumps(arguments) + "\n")
            ways = os.environ["STANDIN"].split()
            WAYS[ways[min(int(os.environ["CLAUDEOPS_TIER"]), len(ways)) - 1]]()
