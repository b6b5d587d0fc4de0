"""``ssh`` and its kin: the remote command is a script of its own, on another host. Pure. Called from ``launch``."""

import re

from supervisor.model.reading import OpaqueKind, Role, Word
from supervisor.shell.inner import deeper, joined, run_text
from supervisor.shell.interpreters import run_shell_program
from supervisor.shell.options import Found, find_options, positional, table
from supervisor.shell.place import Call, Desk, Place
from supervisor.shell.unreadable import Unreadable

_SSH = table("46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:p:P:Q:R:S:W:w:")
_AUTOSSH = table("46AaCfGgKkNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:M:O:o:p:P:Q:R:S:W:w:")
_MOSH = table("46an", "client= server= predict= ssh= port= bind-server= family= no-init local no-ssh-pty")
_STARTS_NOTHING = ("-G", "-O", "-Q", "-V", "-N")
_ACTS = ("-D", "-E", "-F", "-I", "-L", "-R", "-S", "-W", "-w", "-M", "-A", "-X", "-Y", "-f")
_LOCAL_COMMANDS = frozenset({"proxycommand", "localcommand", "knownhostscommand"})
_QUIET_SETTINGS = frozenset(
    {
        "addressfamily",
        "batchmode",
        "bindaddress",
        "checkhostip",
        "ciphers",
        "clearallforwardings",
        "compression",
        "connectionattempts",
        "connecttimeout",
        "controlmaster",
        "controlpath",
        "controlpersist",
        "escapechar",
        "exitonforwardfailure",
        "forwardagent",
        "forwardx11",
        "globalknownhostsfile",
        "gssapiauthentication",
        "hashknownhosts",
        "hostkeyalgorithms",
        "hostkeyalias",
        "identitiesonly",
        "identityfile",
        "ipqos",
        "kbdinteractiveauthentication",
        "kexalgorithms",
        "loglevel",
        "macs",
        "nohostauthenticationforlocalhost",
        "numberofpasswordprompts",
        "passwordauthentication",
        "permitlocalcommand",
        "port",
        "preferredauthentications",
        "proxyjump",
        "pubkeyacceptedalgorithms",
        "pubkeyacceptedkeytypes",
        "pubkeyauthentication",
        "rekeylimit",
        "requesttty",
        "serveralivecountmax",
        "serveraliveinterval",
        "stricthostkeychecking",
        "tcpkeepalive",
        "updatehostkeys",
        "user",
        "userknownhostsfile",
        "verifyhostkeydns",
        "visualhostkey",
    }
)
_SETTING = re.compile(r"\s*([A-Za-z0-9]+)\s*(?:=|\s)\s*(.*)", re.DOTALL)
# Put into the text of a local shell as it is, up to OpenSSH 9.5.
_JUMPS = re.compile(r"(?:ssh://)?[A-Za-z0-9_\[][A-Za-z0-9_.@:%\[\],/-]*")
_TARGET = re.compile(r"(?:ssh://)?(?:([^@]*)@)?(\[[^\]]*\]|[^:/]*)(?::[0-9]+)?/?")


def run_ssh(desk: Desk, call: Call, place: Place) -> None:
    """The words after the host, joined by blanks, are what the remote shell reads."""
    program = call.words[0].text.rpartition("/")[2]
    known = {"autossh": _AUTOSSH, "mosh": _MOSH}.get(program, _SSH)
    before = find_options(call.words[1:], known, program=program)
    if not before.rest or before.has("-V", "-Q"):
        desk.report(call, place)
        return
    target = positional(before.rest[0], program)
    after = find_options(before.rest[1:], known, program=program)
    options = (*before.options, *after.options)
    found = Found(options=options, rest=after.rest)
    local, remote, user = _settings(found)
    jumps = found.value("-J")
    if program != "mosh" and jumps is not None:
        _check_jumps(jumps)
    words = [Word(text=remote)] if remote is not None else list(found.rest)
    matched = _TARGET.fullmatch(target)
    target_user, host = matched.groups() if matched else (None, target)
    named = found.value("-l")
    inside = deeper(place, program, host=host, user=target_user or (named.text if named else user))
    text = joined(words)
    if words and not text.static:
        raise Unreadable(
            OpaqueKind.DYNAMIC_SCRIPT, text.text, "the remote shell is given text that is only known at run time"
        )
    if not words and found.has(*_STARTS_NOTHING):
        desk.report(call, place)
    else:
        acts = bool(local) or found.has(*_ACTS) or program == "mosh"
        desk.report(call, place, Role.CARRIER if acts else Role.WRAPPER)
    for command in local:
        desk.script(command, deeper(place, program))
    if words:
        run_text(desk, text, inside, call.feed)
    elif not found.has(*_STARTS_NOTHING):
        run_shell_program(desk, Call(words=(Word(text="sh"),), feed=call.feed), inside)


def _check_jumps(jumps: Word) -> None:
    if not jumps.static or not _JUMPS.fullmatch(jumps.text) or ",-" in jumps.text:
        raise Unreadable(OpaqueKind.WRAPPER_ARGUMENT, jumps.text, "a host to jump over is not plainly named")


def _settings(found: Found) -> tuple[list[str], str | None, str | None]:
    """The local commands, the remote command and the user that ``-o`` settings name."""
    local: list[str] = []
    remote = user = None
    for name, value in found.options:
        if name == "--ssh":
            raise Unreadable(OpaqueKind.UNKNOWN_WRAPPER_OPTION, name, "another program is named to connect with")
        if name != "-o" or value is None:
            continue
        setting = _SETTING.fullmatch(value.text)
        key = setting.group(1).lower() if setting else ""
        if setting is None or not value.static:
            raise Unreadable(OpaqueKind.WRAPPER_ARGUMENT, value.text, "an ssh setting is only known at run time")
        if key in _LOCAL_COMMANDS:
            if setting.group(2) != "none":
                local.append(setting.group(2))
        elif key == "remotecommand":
            remote = setting.group(2)
        elif key == "proxyjump":
            _check_jumps(Word(text=setting.group(2)))
        elif key == "user":
            user = setting.group(2)
        elif key not in _QUIET_SETTINGS:
            raise Unreadable(OpaqueKind.UNKNOWN_WRAPPER_OPTION, value.text, "ssh has a setting here that is not known")
    return local, remote, user
