"""What starting a command would run: the table of all programs that start others. Pure. Called from ``read``."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial

from supervisor.model.reading import OpaqueKind, Role
from supervisor.shell.carriers import (
    run_find,
    run_parallel,
    run_perf,
    run_scheduler,
    run_screen,
    run_su,
    run_tmux,
    run_xargs,
)
from supervisor.shell.containers import (
    run_compose,
    run_docker,
    run_ip,
    run_kubectl,
    run_lxc,
    run_lxc_attach,
    run_machinectl,
)
from supervisor.shell.inner import joined, run_text
from supervisor.shell.interpreters import AWKS, SHELLS, is_interpreter, run_awk, run_interpreter, run_shell_program
from supervisor.shell.options import find_options, table
from supervisor.shell.place import NO_FEED, Call, Desk, Place
from supervisor.shell.remote import run_ssh
from supervisor.shell.unreadable import Unreadable
from supervisor.shell.wrappers import WRAPPERS, run_wrapper

_DEPTH_LIMIT = 16
_Runner = Callable[[Desk, Call, Place], None]

# A program in one of these was put there by whoever wrote the text, or by nobody one knows.
_UNSAFE_PATH = re.compile(r"\.{1,2}/.*|~.*|[^/]+/.*|/(?:tmp|var/tmp|dev|proc|run/user|home)/.*", re.DOTALL)
_LOADER = re.compile(r"ld-linux.*\.so.*|ld-musl.*\.so.*|ld\.so.*")


def launch(desk: Desk, call: Call, place: Place) -> None:
    """Report the command, and go on with every command it starts. Raises ``Unreadable`` where it cannot."""
    if not call.words:
        if call.assignments or call.redirects:
            desk.report(call, place)
        return
    head = call.words[0]
    name, from_nowhere_known, runner = _program(head.text)
    if place.depth > _DEPTH_LIMIT:
        raise Unreadable(OpaqueKind.TOO_DEEP, joined(call.words).text, "it is wrapped too many times")
    if head.dynamic or head.glob or head.splits or not name:
        raise Unreadable(
            OpaqueKind.VARIABLE_COMMAND, joined(call.words).text, "which program runs is only known at run time"
        )
    if from_nowhere_known:
        raise Unreadable(OpaqueKind.SCRIPT_FILE, joined(call.words).text, "it runs a file that was not read")
    if runner is None:
        desk.report(call, place)
    else:
        runner(desk, call, place)


@lru_cache(maxsize=512)
def _program(path: str) -> tuple[str, bool, _Runner | None]:
    """The name of a program, whether it comes from a place nobody knows, and what runs what it starts in turn."""
    name = path.rpartition("/")[2]
    unsafe = (_LOADER.fullmatch(name) or _UNSAFE_PATH.fullmatch(path)) is not None
    return name, unsafe, _RUNNERS.get(name) or (run_interpreter if is_interpreter(name) else None)


def _run_eval(desk: Desk, call: Call, place: Place) -> None:
    words = call.words[1:]
    if words and words[0].text == "--":
        words = words[1:]
    desk.report(call, place, Role.WRAPPER)
    run_text(desk, joined(words), _same_shell(place, "eval"), call.feed)


def _run_trap(desk: Desk, call: Call, place: Place) -> None:
    found = find_options(call.words[1:], table("lpP"), program="trap")
    desk.report(call, place, Role.CARRIER if len(found.rest) > 1 else Role.PLAIN)
    if len(found.rest) > 1 and found.rest[0].text not in ("", "-"):
        run_text(desk, found.rest[0], _same_shell(place, "trap"), NO_FEED)


def _run_source(desk: Desk, call: Call, place: Place) -> None:  # noqa: ARG001 - one signature for all
    raise Unreadable(OpaqueKind.SCRIPT_FILE, joined(call.words).text, "the shell runs a file that was not read")


def _run_alias(desk: Desk, call: Call, place: Place) -> None:
    if any("=" in word.text or not word.static for word in call.words[1:]):
        raise Unreadable(OpaqueKind.ALIAS, joined(call.words).text, "it gives commands another meaning")
    desk.report(call, place)


def _run_redefining(letters: str, desk: Desk, call: Call, place: Place) -> None:
    """Builtins that, with one of these options, load code, rebind a name or call back."""
    for word in call.words[1:]:
        if word.maybe_option or (word.text.startswith("-") and any(letter in word.text for letter in letters)):
            raise Unreadable(
                OpaqueKind.REDEFINITION, joined(call.words).text, "it changes what a name or an event runs"
            )
    desk.report(call, place)


def _same_shell(place: Place, program: str) -> Place:
    return replace(place, via=(*place.via, program), depth=place.depth + 1, values={})


_RUNNERS: Mapping[str, _Runner] = {
    **{name: partial(run_wrapper, wrapper) for name, wrapper in WRAPPERS.items()},
    **dict.fromkeys(SHELLS, run_shell_program),
    **dict.fromkeys(AWKS, run_awk),
    **dict.fromkeys(("ssh", "autossh", "mosh"), run_ssh),
    **dict.fromkeys(("docker", "podman", "nerdctl"), run_docker),
    **dict.fromkeys(("docker-compose", "podman-compose"), run_compose),
    **dict.fromkeys(("kubectl", "oc", "k3s-kubectl"), run_kubectl),
    **dict.fromkeys(("lxc", "incus"), run_lxc),
    **dict.fromkeys(("find", "fd", "fdfind"), run_find),
    **dict.fromkeys(("su", "runuser"), run_su),
    **dict.fromkeys(("at", "batch", "crontab"), run_scheduler),
    **dict.fromkeys(("source", "."), _run_source),
    **dict.fromkeys(("mapfile", "readarray"), partial(_run_redefining, "C")),
    "lxc-attach": run_lxc_attach,
    "machinectl": run_machinectl,
    "ip": run_ip,
    "xargs": run_xargs,
    "parallel": run_parallel,
    "tmux": run_tmux,
    "screen": run_screen,
    "perf": run_perf,
    "eval": _run_eval,
    "trap": _run_trap,
    "alias": _run_alias,
    "hash": partial(_run_redefining, "p"),
    "enable": partial(_run_redefining, "f"),
    "bind": partial(_run_redefining, "xfu"),
    "complete": partial(_run_redefining, "CF"),
    "compgen": partial(_run_redefining, "CFW"),
}
