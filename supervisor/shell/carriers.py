"""Programs that start commands in ways of their own: find, xargs, parallel, su, tmux … Pure. Called from ``launch``."""

from collections.abc import Iterator, Sequence

from supervisor.model.reading import OpaqueKind, Role, Word
from supervisor.shell.inner import deeper, joined, run_shell, run_text, run_words
from supervisor.shell.interpreters import SHELLS
from supervisor.shell.options import find_options, positional, table
from supervisor.shell.place import NO_FEED, Call, Desk, Place
from supervisor.shell.unreadable import Unreadable

_XARGS = table(
    "0a:d:E:e?I:i?L:l?n:oP:prs:tx",
    "null arg-file= delimiter= eof? replace? max-lines? max-args= open-tty max-procs= interactive no-"
    " run-if-empty max-chars= verbose exit show-limits process-slot-var= help version",
)
_PARALLEL = table(
    "0a:d:I:j:k?L:l?m?N:n:P:qrs:tuvX",
    "null arg-file= delimiter= replace? jobs= max-procs= keep-order max-args= max-lines? max-replace-"
    " args= no-run-if-empty verbose will-cite bar progress eta halt= timeout= delay= retries= tag"
    " line-buffer lb group ungroup dry-run colsep= joblog= xargs noswap load= memfree= nice=",
)
_SU = table(
    "c:fg:G:lmps:Pw:Tu:",
    "command= session-command= fast group= supp-group= login preserve-environment shell= pty user="
    " whitelist-environment= no-pty",
)
_FIND_STARTS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FD_STARTS = frozenset({"-x", "-X", "--exec", "--exec-batch"})
_TMUX = table("2CDluvVNf:L:S:c:T:")
_TMUX_STARTS = {
    **dict.fromkeys(("new-session", "new"), table("AdDEPXc:e:f:F:n:s:t:x:y:")),
    **dict.fromkeys(("new-window", "neww"), table("abdkPSc:e:F:n:t:")),
    **dict.fromkeys(("split-window", "splitw"), table("bdfhIvPZc:e:F:l:t:p:")),
    **dict.fromkeys(("respawn-pane", "respawnp", "respawn-window", "respawnw"), table("kc:e:t:")),
}
_TMUX_READS = frozenset(
    {
        "ls",
        "list-sessions",
        "list-windows",
        "lsw",
        "list-panes",
        "lsp",
        "capture-pane",
        "capturep",
        "has-session",
        "has",
    }
    | {"show-options", "show", "list-clients", "lsc", "info", "kill-session", "kill-window", "kill-pane", "kill-server"}
)
_SCREEN = table("aAc:dDe:h:ilLmOp:qQrRs:S:t:T:Uvx")
_PERF = table(
    "e:adr:p:t:C:ABD:I:x:o:invgG:S:F:c:m:sqTPRW:M:",
    "event= all-cpus detailed repeat= pid= tid= cpu= no-aggr delay= interval-print= field-separator="
    " output= no-inherit verbose call-graph= freq= count= duration= summary with-summary failure",
)


def run_find(desk: Desk, call: Call, place: Place) -> None:
    """``find`` itself, and each command it would start on what it finds."""
    program = call.words[0].text.rpartition("/")[2]
    starts = _FD_STARTS if program.startswith("fd") else _FIND_STARTS
    commands = list(_found_commands(call.words, starts, may_end=program.startswith("fd")))
    desk.report(call, place, Role.CARRIER if commands else Role.PLAIN)
    for words in commands:
        filled = [_filled(word, "{") if program.startswith("fd") else _filled(word, "{}") for word in words]
        run_words(desk, filled, Call(words=()), deeper(place, program))


def run_xargs(desk: Desk, call: Call, place: Place) -> None:
    """The command with arguments that are only known at run time."""
    found = find_options(call.words[1:], _XARGS, program="xargs")
    mark = found.value("-I", "-i", "--replace")
    replaces = found.has("-I", "-i", "--replace")
    words: Sequence[Word] = found.rest or (Word(text="echo"),)
    if replaces:
        text = mark.text if mark is not None else "{}"
        words = [_filled(word, text, leading=True) for word in words]
    else:
        words = [*words, Word(text="{}", dynamic=True, splits=True, leading=True)]
    desk.report(call, place, Role.CARRIER if found.has("-p", "--interactive") else Role.WRAPPER)
    run_words(desk, words, Call(words=()), deeper(place, "xargs"))


def run_parallel(desk: Desk, call: Call, place: Place) -> None:
    """GNU parallel joins its words and gives them to a shell, with its arguments quoted."""
    found = find_options(call.words[1:], _PARALLEL, program="parallel")
    words: list[Word] = []
    for word in found.rest:
        if word.text.startswith(":::"):
            break
        words.append(word)
    text = joined(words)
    if not words or not text.static or found.has("-I", "--replace", "-a", "--arg-file"):
        raise Unreadable(
            OpaqueKind.DYNAMIC_SCRIPT, text.text, "parallel is given commands that are only known at run time"
        )
    if "{" in text.text and any(character in text.text for character in "'\"`$\\="):
        raise Unreadable(
            OpaqueKind.DYNAMIC_SCRIPT, text.text, "parallel puts values inside quotes, where they may end them"
        )
    desk.report(call, place, Role.CARRIER)
    filled = text.text.replace("{", '"$').replace("}", '"').replace('"$"', '"$argument"')
    desk.script(filled if "{" in text.text else f'{text.text} "$argument"', deeper(place, "parallel"))


def run_su(desk: Desk, call: Call, place: Place) -> None:
    """``su`` and ``runuser``: a text for the user's shell, or with ``runuser -u`` a command."""
    program = call.words[0].text.rpartition("/")[2]
    named = find_options(call.words[1:], _SU, program=program)
    user = named.value("-u", "--user")
    if program == "runuser" and user is not None and named.rest:
        desk.report(call, place, Role.WRAPPER)
        run_words(desk, named.rest, call, deeper(place, program, user=user.text))
        return
    found = find_options(call.words[1:], _SU, program=program, permute=True)
    users = [positional(word, program) for word in found.rest if word.text != "-"]
    shell = found.value("-s", "--shell")
    if len(users) > 1 or (shell is not None and shell.text.rpartition("/")[2] not in SHELLS):
        raise Unreadable(
            OpaqueKind.WRAPPER_ARGUMENT, joined(call.words).text, f"{program} passes on arguments that are not read"
        )
    inside = deeper(place, program, user=users[0] if users else "root")
    text = found.value("-c", "--command", "--session-command")
    desk.report(call, place, Role.WRAPPER)
    if text is not None:
        run_text(desk, text, inside, call.feed)
    else:
        run_shell(desk, call, inside)


def run_tmux(desk: Desk, call: Call, place: Place) -> None:
    found = find_options(call.words[1:], _TMUX, program="tmux")
    verb = positional(found.rest[0], "tmux") if found.rest else ""
    if any("#(" in word.text or word.text.endswith(";") for word in call.words) or found.has("-c", "-f"):
        raise _terminal(call)
    if verb in _TMUX_READS or found.has("-V"):
        desk.report(call, place)
        return
    known = _TMUX_STARTS.get(verb)
    if known is None:
        raise _terminal(call)
    words = find_options(found.rest[1:], known, program="tmux").rest
    desk.report(call, place, Role.CARRIER)
    if len(words) == 1:
        run_text(desk, words[0], deeper(place, "tmux"), NO_FEED)
    elif words:
        run_words(desk, words, Call(words=()), deeper(place, "tmux"))


def run_screen(desk: Desk, call: Call, place: Place) -> None:
    if any(word.text in ("-ls", "-list", "-v", "-wipe") for word in call.words[1:2]):
        desk.report(call, place)
        return
    if any(word.text in ("-X", "-Q") or word.maybe_option for word in call.words[1:]):
        raise _terminal(call)
    found = find_options(call.words[1:], _SCREEN, program="screen")
    if found.has("-c", "-s"):
        raise _terminal(call)
    desk.report(call, place, Role.CARRIER)
    if found.rest:
        run_words(desk, found.rest, Call(words=()), deeper(place, "screen"))


def run_perf(desk: Desk, call: Call, place: Place) -> None:
    verb = positional(call.words[1], "perf") if len(call.words) > 1 else ""
    if verb not in ("stat", "record", "trace"):
        desk.report(call, place)
        return
    found = find_options(call.words[2:], _PERF, program="perf")
    desk.report(call, place, Role.CARRIER)
    if found.rest:
        run_words(desk, found.rest, call, deeper(place, "perf"))


def run_scheduler(desk: Desk, call: Call, place: Place) -> None:
    """``at``, ``batch`` and ``crontab`` run later what they are given now."""
    program = call.words[0].text.rpartition("/")[2]
    texts = [word.text for word in call.words[1:]]
    reads = {"at": ("-l", "-V", "-c"), "crontab": ("-l", "-r")}.get(program, ())
    if all(word.static for word in call.words) and any(text in reads for text in texts):
        desk.report(call, place)
        return
    raise Unreadable(OpaqueKind.SCHEDULED, " ".join((program, *texts)), f"{program} runs later what it is given now")


def _found_commands(words: Sequence[Word], starts: frozenset[str], *, may_end: bool) -> Iterator[list[Word]]:
    index = 0
    while index < len(words):
        if words[index].text not in starts:
            index += 1
            continue
        command: list[Word] = []
        index += 1
        while index < len(words) and not _ends_command(words[index], command):
            command.append(words[index])
            index += 1
        if index >= len(words) and not may_end:
            raise Unreadable(OpaqueKind.WRAPPER_ARGUMENT, joined(words).text, "a command of find is not ended")
        yield command


def _ends_command(word: Word, command: Sequence[Word]) -> bool:
    return word.text == ";" or (word.text == "+" and bool(command) and command[-1].text == "{}")


def _filled(word: Word, mark: str, *, leading: bool = False) -> Word:
    """The word once something unknown has taken the place of the mark."""
    if not mark or mark not in word.text:
        return word
    starts = leading and word.text.startswith(mark)
    return Word(text=word.text, dynamic=True, glob=word.glob, splits=word.splits, leading=word.leading or starts)


def _terminal(call: Call) -> Unreadable:
    return Unreadable(OpaqueKind.TERMINAL_INPUT, joined(call.words).text, "it drives another terminal")
