"""What a command does to the supervisor and to what is shut. Pure. Called from ``permission``.

No rule can open any of this: the supervisor's files, its processes, its own commands and the environment it gives.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from supervisor.decide.rules.shut_paths import LEAVE_ALONE, OFF_LIMITS, Shut, reaches_below, searchable, touched
from supervisor.decide.rules.verdicts import Finding, command_text, refused, shown
from supervisor.model.reading import Command, Role, Word
from supervisor.model.rule import OffLimits

_WRAPPER: Final = Role.WRAPPER  # asked for at every command, and an enum is slow to look up in
_OWN_VARIABLES: Final = re.compile(r"(?:CLAUDE|ANTHROPIC|OPSLADDER).*")
_OWN_PROGRAMS: Final = frozenset({"opsladder", "claude"})
_OWN_PROCESSES: Final = ("opsladder", "claude", "python3", "python")
_KILL_BY_NAME: Final = frozenset({"pkill", "killall", "skill", "snice"})
_BY_PID: Final = frozenset(
    {"kill", "strace", "ltrace", "gdb", "gcore", "renice", "taskset", "prlimit", "chrt", "ionice", "nsenter", "reptyr"}
    | {"criu", "py-spy"}
)
_SIGNALLING: Final = _BY_PID | _KILL_BY_NAME | {"killall5"}
_MOVES_TREES: Final = frozenset({"mv", "mount", "umount", "rsync", "find", "shred"})
_CHANGES_TREES: Final = frozenset({"rm", "chmod", "chown", "chgrp", "cp", "setfacl", "chattr", "tar", "install"})
_DECODERS: Final = frozenset({"base64", "base32", "basenc", "xxd", "rev", "uudecode", "gpg"})
_READERS: Final = frozenset(
    {"cat", "tac", "head", "tail", "nl", "od", "xxd", "hexdump", "hd", "strings", "cut", "sort", "paste", "fold", "wc"}
    | {"grep", "egrep", "fgrep", "zgrep", "rg", "sed", "awk", "gawk", "mawk", "jq", "yq", "diff", "comm", "base64"}
    | {"zcat", "bzcat", "xzcat", "column", "tr", "uniq", "join", "rev", "expand", "fmt", "file", "find", "tar", "ls"}
)
_GREPS: Final = frozenset({"grep", "egrep", "fgrep", "zgrep", "bzgrep", "xzgrep", "zstdgrep"})
_SEARCH_TREES: Final = frozenset({"rg", "ag", "ack"})
_SEARCHERS: Final = _GREPS | _SEARCH_TREES | {"find"}
# Programs of which more is looked at than the words.
_LOOKED_AT: Final = _OWN_PROGRAMS | _SIGNALLING | _MOVES_TREES | _CHANGES_TREES | _SEARCHERS
_FILTERS: Final = frozenset({"jq", "yq", "gojq"})


def is_known_to_be_harmless(command: Command, area: Shut) -> bool:
    """Whether only the words of the command count, and each of them has been let go before. True of most commands."""
    if command.assignments or command.name in _LOOKED_AT or "/" in command.path:
        return False
    let_go = area.let_go.get
    for word in command.argv[1:]:
        if word.dynamic or word.glob or not let_go(word.text):
            return False
    for redirect in command.redirects:
        word = redirect.target
        if word.dynamic or word.glob or not let_go(word.text):
            return False
    return True


def command_touches(command: Command, area: Shut, *, changes: bool) -> Iterator[Finding]:
    """What a command does to what is shut. Wrappers are asked about too: they may change directory or root."""
    what = partial(command_text, command)
    if "/" in command.path:
        # A program's place is only looked at for what nobody may name: /usr/bin may be run, not changed.
        yield from touched(command.argv[:1], what, area, changes=False)
    yield from touched(_words(command), what, area, changes=changes)
    if command.role is not _WRAPPER:
        if command.name in _OWN_PROGRAMS:
            yield refused(OFF_LIMITS, f"`{shown(what())}` is the supervisor's own command. {LEAVE_ALONE}")
        if command.name in _SIGNALLING:
            yield from _signals(command, what(), area.limits)
        if changes:
            yield from _trees(command, what, area)
        if command.name in _SEARCHERS:
            yield from _searches(command, what, area)
    for assignment in command.assignments:
        if _OWN_VARIABLES.fullmatch(assignment.name):
            yield refused(OFF_LIMITS, f"{assignment.name} belongs to the supervisor's environment. {LEAVE_ALONE}")


def decodes(commands: Sequence[Command]) -> bool:
    """Whether a decoder stands in the text: what it yields may be the name of something shut."""
    return any(
        command.name in _DECODERS or (command.name == "openssl" and command.words[:1] != () and _encrypts(command))
        for command in commands
    )


def reads_unknown_files(command: Command) -> bool:
    """Whether the command opens a file whose name nobody knows beforehand."""
    return command.name in _READERS and any(word.leading for word in command.argv[1:])


def _encrypts(command: Command) -> bool:
    return command.words[0].text in ("enc", "base64")


def _words(command: Command) -> list[Word]:
    arguments = command.argv[1:]
    if command.name == "ssh" and arguments and arguments[0].text == "-i":
        arguments = arguments[2:]  # a key that is used is not read
    words = list(arguments)
    if command.name in _FILTERS:
        # What jq is given first looks like a hidden file and is none.
        words = [word for word in words if word.text[:1] != "." or "/" in word.text]
    words += [redirect.target for redirect in command.redirects]
    words += [assignment.value for assignment in command.assignments]
    return words


def _trees(command: Command, what: Callable[[], str], area: Shut) -> Iterator[Finding]:
    """Removing, moving or changing a directory that the supervisor's files are somewhere below."""
    recursive = command.has_option("-r", "-R", "--recursive", "-a", "--archive", "-x", "--extract")
    if command.name not in _MOVES_TREES and not (command.name in _CHANGES_TREES and recursive):
        return
    if reaches_below(command.words, area.limits.paths, area):
        yield refused(OFF_LIMITS, f"`{shown(what())}` reaches what belongs to the supervisor. {LEAVE_ALONE}")


def _searches(command: Command, what: Callable[[], str], area: Shut) -> Iterator[Finding]:
    """Looking into every file of a directory that the supervisor's files are somewhere below."""
    if command.name in _SEARCH_TREES or (
        command.name in _GREPS and command.has_option("-r", "-R", "--recursive", "--dereference-recursive")
    ):
        # The first word is what is looked for; without another one, everything from here on is looked into.
        places = command.words[1:] or (Word(text="."),)
    elif command.name == "find" and command.has_option("-exec", "-execdir", "-ok", "-okdir"):
        places = command.words if any(word.text in _READERS - {"ls", "file", "wc"} for word in command.words) else ()
    else:
        return
    if reaches_below(places, searchable(area.limits), area):
        yield refused(
            OFF_LIMITS, f"`{shown(what())}` would look into what belongs to the supervisor. Name a narrower directory."
        )


def _signals(command: Command, what: str, limits: OffLimits) -> Iterator[Finding]:
    problem = f"`{shown(what)}` could signal the supervisor's own processes. Name the one process you mean."
    arguments = [word.text for word in command.argv[1:]]
    if command.name in _BY_PID:
        pids = {int(number) for text in arguments for number in re.findall(r"[0-9]{1,9}", text)}
        if pids & limits.pids:
            yield refused(OFF_LIMITS, problem)
    if command.name == "kill":
        # A first -1 is a signal, any later one means every process there is; 0 means one's own group.
        if "0" in arguments or "-1" in arguments[1:]:
            yield refused(OFF_LIMITS, problem)
    elif command.name == "killall5" or (
        command.name in _KILL_BY_NAME and any(_may_name_own(word) for word in command.words)
    ):
        yield refused(OFF_LIMITS, problem)


def _may_name_own(word: Word) -> bool:
    """Whether a pattern for process names could fit one of ours; a regular expression is not looked into."""
    if not word.static or re.search(r"[\\^$.|?*+()\[\]{}]", word.text):
        return True
    return any(word.text in own or own in word.text for own in _OWN_PROCESSES)
