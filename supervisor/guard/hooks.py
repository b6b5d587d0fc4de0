"""The settings that make a CLI ask before every tool call. Pure. Called from climb.launch for each run.

A CLI goes ahead when a hook fails in any way but exit code 2, so the command turns every other ending into a refusal: a
client that is missing, crashes, hangs, is cut short, or says nothing. It words the refusal as a decision, because with
the exit code alone the model would be shown the whole command. Three more locks stand behind it: ``onFailure``, which
CLIs from 2.1.325 on obey, a limit for the hook that no run lives to see, and that the CLI is told of no tool that is
allowed without the hook's word (``--allowedTools`` stays empty in a guarded run).
"""

import json
import shlex
from pathlib import Path

from supervisor.guard.bounds import Bounds
from supervisor.guard.post import Post
from supervisor.guard.wire import AFTER, AFTER_FAILURE, BEFORE

CLIENT = Path(__file__).with_name("client.py")

# A run ends with its report, and 2.1.325 waits a second and a half for a hook that still runs then.
_ALL_BUT_THE_REPORT = "^(?!StructuredOutput$)"
_UNANSWERED = "This call is refused, because the guard gave no answer."


def hook_settings(post: Post, bounds: Bounds, *, python: str, client: Path = CLIENT) -> str:
    """The JSON for ``--settings``. ``python`` is the interpreter that starts the client."""
    words = [python, "-I", "-S", str(client), str(post.socket), str(post.secret_file), str(bounds.client_seconds)]
    # SIGKILL: the only signal that also ends a client which was stopped.
    ask = shlex.join(["timeout", "-s", "KILL", str(bounds.watchdog_seconds), *words])
    before = {
        "type": "command",
        "command": _or_refuse(ask),
        "timeout": bounds.hook_seconds,
        "onFailure": "block",
    }
    after = {
        "type": "command",
        # What has run has run: a failure to say so must not look like a failure of the call.
        "command": f"{ask} >/dev/null 2>&1 || exit 0",
        "timeout": bounds.hook_seconds,
        # Nothing waits for it: the next call to the model is on its way meanwhile.
        "async": True,
    }
    hooks = {
        BEFORE: [{"matcher": "*", "hooks": [before]}],
        AFTER: [{"matcher": _ALL_BUT_THE_REPORT, "hooks": [after]}],
        AFTER_FAILURE: [{"matcher": _ALL_BUT_THE_REPORT, "hooks": [after]}],
    }
    return json.dumps({"hooks": hooks}, separators=(",", ":"))


def _or_refuse(ask: str) -> str:
    """Print the client's answer if it is one, or its refusal; else a refusal of our own, or, failing that, exit 2."""
    refusal = shlex.quote(_refusal(_UNANSWERED))
    return (
        f"answer=$({ask} 2>/dev/null); ended=$?; "
        f"""case "$ended$answer" in '0{{"hookSpecificOutput":'*|'2'{_REFUSES}*) ;; *) answer={refusal} ;; esac; """
        """printf '%s\\n' "$answer" || exit 2"""
    )


def _refusal(sentence: str) -> str:
    decision = {"hookEventName": BEFORE, "permissionDecision": "deny", "permissionDecisionReason": sentence}
    return json.dumps({"hookSpecificOutput": decision}, separators=(",", ":"))


_REFUSES = shlex.quote(_refusal("").removesuffix('"}}'))
