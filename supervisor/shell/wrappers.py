"""Programs that start the command in their arguments, as a table. Pure. Called from ``launch``."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from supervisor.model.reading import OpaqueKind, Role, Word
from supervisor.shell.inner import deeper, joined, run_shell, run_text, run_words, take_assignments, variables_set
from supervisor.shell.options import Found, Table, find_options, positional, table
from supervisor.shell.outline import RESERVED
from supervisor.shell.place import Call, Desk, Place
from supervisor.shell.unreadable import Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """How one program wraps another.

    ``takes`` words stand before the command. With one of ``stops`` the program starts nothing; with one of ``acts`` it
    also does something itself; ``sets`` give variables to what it starts. ``script`` options give a text for a shell;
    with ``joins`` all words are such a text, with ``takes_files`` none of them is part of a command.
    """

    known: Table = field(default_factory=table)
    takes: int = 0
    role: Role = Role.WRAPPER
    stops: frozenset[str] = frozenset()
    acts: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    sets: frozenset[str] = frozenset()
    script: frozenset[str] = frozenset()
    split: frozenset[str] = frozenset()
    joins: bool = False
    joins_unless: frozenset[str] = frozenset()
    assigns: bool = False
    shell_if_empty: bool = False
    shell_if: frozenset[str] = frozenset()
    takes_files: bool = False
    is_keyword: bool = False
    drops_dash: bool = False


def run_wrapper(wrapper: Wrapper, desk: Desk, call: Call, place: Place) -> None:
    """Report the wrapper and go on with what it starts."""
    program = call.words[0].text.rpartition("/")[2]
    words = call.words[1:]
    if wrapper.drops_dash and words and words[0].text == "-":
        words = words[1:]
    found = find_options(words, wrapper.known, program=program)
    if found.has(*wrapper.stops):
        desk.report(call, place)
        return
    rest: Sequence[Word] = found.rest
    if len(rest) < wrapper.takes:
        desk.report(call, place)
        return
    for word in rest[: wrapper.takes]:
        positional(word, program)
    rest = rest[wrapper.takes :]
    text = found.value(*wrapper.script)
    if text is None and rest and rest[0].text in wrapper.script and len(rest) == 2:
        text = rest[1]
    if wrapper.takes_files:
        if found.dashed is not None:
            raise Unreadable(OpaqueKind.WRAPPER_ARGUMENT, joined(call.words).text, f"{program} may run what follows --")
        rest = ()
    extra, rest = take_assignments(rest, program) if wrapper.assigns else ([], rest)
    extra += variables_set(found, wrapper.sets)
    rest = (*_split(found, wrapper), *rest)
    if wrapper.is_keyword and rest and rest[0].text in RESERVED:
        raise Unreadable(OpaqueKind.UNSUPPORTED, joined(call.words).text, f"{program} stands before a whole statement")
    user = found.value(*wrapper.users)
    inside = deeper(place, program, user=user.text if user else None)
    role = Role.CARRIER if found.has(*wrapper.acts) else wrapper.role
    starts_shell = wrapper.shell_if_empty or found.has(*wrapper.shell_if)
    if text is None and not rest and not starts_shell:
        desk.report(call, place)
        return
    desk.report(call, place, role)
    if text is not None:
        run_text(desk, text, inside, call.feed)
    elif not rest:
        run_shell(desk, call, inside)
    elif wrapper.joins and not found.has(*wrapper.joins_unless):
        run_text(desk, joined(rest), inside, call.feed)
    else:
        run_words(desk, rest, call, inside, extra=(*call.assignments, *extra))


def _split(found: Found, wrapper: Wrapper) -> tuple[Word, ...]:
    text = found.value(*wrapper.split)
    if text is None:
        return ()
    if not text.static or any(character in text.text for character in "\"'\\$#{}"):
        raise Unreadable(OpaqueKind.DYNAMIC_SCRIPT, text.text, "a text is split into words in a way that is not read")
    return tuple(Word(text=part) for part in text.text.split())


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


_NAMESPACES = "m?u?i?n?p?U?C?T?r?w?S:G:F"
_NAMESPACES_LONG = "mount? uts? ipc? net? pid? user? cgroup? time? root? wd? setuid= setgid= no-fork"
_TRACE = table(
    "a:b:e:E:I:o:O:p:P:s:S:u:X:x:cCdDffhiknqrtTUvVwyzZA",
    "output= trace= signal= user= env= string-limit= columns= attach= follow-forks summary-only summary"
    " decode-fds? tips?",
)

WRAPPERS: dict[str, Wrapper] = {
    "sudo": Wrapper(
        known=table(
            "u:g:h:p:C:R:D:T:r:t:U:AbBEeHiKklNnPSsVv",
            "user= group= host= prompt= close-from= chroot= chdir= command-timeout= role= type="
            " other-user= askpass background bell preserve-env? edit set-home login remove-timestamp"
            " reset-timestamp list non-interactive preserve-groups stdin shell version validate no-"
            " update help",
        ),
        stops=_set("-l -k -K -v -V --list --version --validate --remove-timestamp --help -e --edit"),
        acts=_set("-R --chroot -C --close-from"),
        users=_set("-u --user"),
        assigns=True,
        shell_if=_set("-i -s --login --shell"),
    ),
    "doas": Wrapper(known=table("u:C:a:nsL"), users=_set("-u"), stops=_set("-L -C"), assigns=True, shell_if=_set("-s")),
    "pkexec": Wrapper(known=table("", "user= disable-internal-agent keep-cwd"), users=_set("--user")),
    "env": Wrapper(
        known=table(
            "i0u:C:S:v",
            "ignore-environment null unset= chdir= split-string= debug block-signal? default-signal? ignore-signal?",
        ),
        assigns=True,
        split=_set("-S --split-string"),
        drops_dash=True,
    ),
    "nohup": Wrapper(),
    "setsid": Wrapper(known=table("cfw", "ctty fork wait")),
    "timeout": Wrapper(known=table("k:s:vfp", "kill-after= signal= verbose foreground preserve-status"), takes=1),
    "nice": Wrapper(known=table("n:0123456789", "adjustment=")),
    "ionice": Wrapper(
        known=table("c:n:p:P:u:t", "class= classdata= pid= pgid= uid= ignore"), stops=_set("-p -P -u --pid")
    ),
    "chrt": Wrapper(
        known=table("abdfiormpRvT:P:D:", "all-tasks batch deadline fifo idle other rr max pid reset-on-fork verbose"),
        takes=1,
        stops=_set("-p --pid -m --max"),
    ),
    "taskset": Wrapper(known=table("acp", "all-tasks cpu-list pid"), takes=1, stops=_set("-p --pid")),
    "stdbuf": Wrapper(known=table("i:o:e:", "input= output= error=")),
    "unbuffer": Wrapper(known=table("p")),
    "choom": Wrapper(known=table("n:p:", "adjust= pid="), stops=_set("-p --pid")),
    "prlimit": Wrapper(known=table("p:n?u?v?", "pid= nofile? nproc? as?"), stops=_set("-p --pid")),
    "numactl": Wrapper(
        known=table("i:N:m:C:l", "interleave= cpunodebind= membind= physcpubind= localalloc hardware show")
    ),
    "catchsegv": Wrapper(),
    "eatmydata": Wrapper(),
    "fakeroot": Wrapper(shell_if_empty=True),
    "setarch": Wrapper(known=table("R", "addr-no-randomize"), takes=1, shell_if_empty=True),
    "dbus-run-session": Wrapper(known=table()),
    "systemd-inhibit": Wrapper(known=table("", "what= who= why= mode= list"), stops=_set("--list"), role=Role.CARRIER),
    "systemd-cat": Wrapper(known=table("t:p:", "identifier= priority= stderr-priority="), role=Role.CARRIER),
    "sshpass": Wrapper(known=table("p:f:d:P:ev")),
    "gosu": Wrapper(takes=1),
    "su-exec": Wrapper(takes=1),
    "chpst": Wrapper(known=table("u:U:b:e:/:n:l:L:m:d:o:p:f:c:t:r:vP012"), role=Role.CARRIER),
    "watch": Wrapper(
        known=table(
            "n:d?q:tbegcxwprC",
            "interval= differences? no-title beep errexit chgexit color exec no-wrap precise equexit= no-rerun",
        ),
        joins=True,
        joins_unless=_set("-x --exec"),
    ),
    "time": Wrapper(
        known=table("f:o:apqvV", "format= output= append portability quiet verbose"),
        acts=_set("-o --output"),
        assigns=True,
        is_keyword=True,
    ),
    "flock": Wrapper(
        known=table(
            "sxeunw:W:E:oFc:v",
            "shared exclusive unlock nonblock nb timeout= wait= conflict-exit-code= close no-fork command= verbose",
        ),
        takes=1,
        script=_set("-c --command"),
        role=Role.CARRIER,
    ),
    "chroot": Wrapper(
        known=table("", "userspec= groups= skip-chdir"),
        takes=1,
        users=_set("--userspec"),
        shell_if_empty=True,
        role=Role.CARRIER,
    ),
    "nsenter": Wrapper(
        known=table(
            "t:aeZ" + _NAMESPACES, "target= all env preserve-credentials follow-context join-cgroup " + _NAMESPACES_LONG
        ),
        shell_if_empty=True,
        role=Role.CARRIER,
    ),
    "unshare": Wrapper(
        known=table(
            "fcR:" + _NAMESPACES.replace("r?", "r"),
            "fork map-root-user map-current-user map-user= map-group= keep-caps kill-child? mount-proc? root= wd= "
            + _NAMESPACES_LONG.replace("root? wd? ", ""),
        ),
        shell_if_empty=True,
        role=Role.CARRIER,
    ),
    "systemd-run": Wrapper(
        known=table(
            "u:p:E:H:M:d:t G q P S r",
            "unit= property= setenv= host= machine= slice= description= uid= gid= nice= working-"
            " directory= on-active= on-boot= on-startup= on-unit-active= on-unit-inactive= on-"
            " calendar= timer-property= path-property= service-type= scope user system remain-after-"
            " exit send-sighup no-block wait pty pipe quiet collect shell slice-inherit no-ask-"
            " password same-dir expand-environment= on-clock-change on-timezone-change background="
            " job-mode=",
        ),
        users=_set("--uid"),
        shell_if=_set("-S --shell"),
        role=Role.CARRIER,
    ),
    "script": Wrapper(
        known=table(
            "ac:ef?qt?I:O:B:T:m:o:E:", "append command= return flush? quiet timing? force log-in= log-out= log-io="
        ),
        script=_set("-c --command"),
        takes_files=True,
        shell_if_empty=True,
        role=Role.CARRIER,
    ),
    "strace": Wrapper(
        known=_TRACE,
        stops=_set("-V -h"),
        acts=_set("-o --output"),
        users=_set("-u --user"),
        sets=_set("-E --env"),
    ),
    "ltrace": Wrapper(known=_TRACE, stops=_set("-V -h"), acts=_set("-o --output"), users=_set("-u")),
    # A program that goes by many names does what the one it is given says: pgrep kills as pkill.
    "exec": Wrapper(known=table("a:cl"), acts=_set("-a")),
    "command": Wrapper(known=table("pvV"), stops=_set("-v -V")),
    "builtin": Wrapper(),
    "coproc": Wrapper(assigns=True, is_keyword=True),
    "busybox": Wrapper(
        known=table("", "list list-full help install="), stops=_set("--list --list-full --help --install")
    ),
    "toybox": Wrapper(),
}
