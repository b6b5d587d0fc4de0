"""Restarts and redeployments by service managers and deployment tools. Pure. Called from ``decide.remedy``.

Most of these tools read ``TOOL VERB NAME…``; they are rows of one table. The rest have a reader of their own.
"""

from dataclasses import dataclass

from supervisor.decide.remedy.words import (
    Hits,
    Reader,
    Shape,
    all_gentle,
    each_of,
    has,
    name_of_container,
    named,
    parse,
    service_name,
    some_maybe_option,
    split_verb,
    values_of,
)
from supervisor.model.permission import ActionKind
from supervisor.model.reading import Command, Word

_RESTART, _REDEPLOY = ActionKind.RESTART, ActionKind.REDEPLOY


def _group_name(text: str) -> str | None:
    """A process of a group counts as the group (``web:web_00``)."""
    return service_name(text.partition(":")[0])


def _pm2_name(text: str) -> str | None:
    """A number or a file does not tell which service it is."""
    return None if text.isdigit() or "." in text else _group_name(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tool:
    """What the verbs of a tool amount to. ``whole`` are those that concern everything it looks after.

    ``own`` are the services of a tool that has no names to give; its verbs may stand anywhere.
    """

    restart: frozenset[str] = frozenset()
    redeploy: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    own: tuple[str, ...] = ()
    shape: Shape = _group_name


_VIRTUAL = each_of("restart reboot reset shutdown poweroff terminate kill stop destroy suspend pause")
_APACHE = _Tool(restart=each_of("restart stop graceful-stop"), own=("apache2", "httpd"))

_TOOLS = {
    "initctl": _Tool(restart=each_of("restart stop")),
    "supervisorctl": _Tool(
        restart=each_of("restart stop remove signal"),
        redeploy=each_of("update"),
        whole=each_of("reload shutdown"),
        valued=each_of("-c --configuration -s --serverurl -u --username -p --password"),
    ),
    "pm2": _Tool(
        restart=each_of("restart reload gracefulReload stop delete del startOrRestart startOrReload"),
        redeploy=each_of("scale"),
        whole=each_of("kill update deploy"),
        valued=each_of("-n --name -i --instances --only --env"),
        shape=_pm2_name,
    ),
    "monit": _Tool(restart=each_of("restart stop"), valued=each_of("-c -d -l -p -g")),
    "dinitctl": _Tool(restart=each_of("restart stop release"), valued=each_of("-p --socket-path")),
    "machinectl": _Tool(restart=_VIRTUAL, valued=each_of("-H --host -M --machine -s --signal -p -n -o --kill-whom")),
    "virsh": _Tool(restart=_VIRTUAL, valued=each_of("-c --connect -d --debug -l --log --mode")),
    "lxc": _Tool(restart=_VIRTUAL, valued=each_of("--project --timeout")),
    "incus": _Tool(restart=_VIRTUAL, valued=each_of("--project --timeout")),
    "qm": _Tool(restart=_VIRTUAL, valued=each_of("--timeout")),
    "pct": _Tool(restart=_VIRTUAL, valued=each_of("--timeout")),
    "vagrant": _Tool(restart=each_of("reload halt suspend destroy"), redeploy=each_of("provision")),
    "apachectl": _APACHE,
    "apache2ctl": _APACHE,
    "apache2": _APACHE,
    "httpd": _APACHE,
    "nginx": _Tool(restart=each_of("stop quit"), valued=each_of("-c -g -p -e"), own=("nginx",)),
    "caddy": _Tool(restart=each_of("stop"), own=("caddy",)),
    "redis-cli": _Tool(restart=each_of("shutdown SHUTDOWN"), valued=each_of("-h -p -a -n -u -s -i -r"), own=("redis",)),
    "mysqladmin": _Tool(restart=each_of("shutdown"), valued=each_of("-h -P -S -u -i"), own=("mysql",)),
    "pg_ctl": _Tool(restart=each_of("restart stop kill"), valued=each_of("-D -m -o -l -t"), own=("postgresql",)),
    "pg_ctlcluster": _Tool(restart=each_of("restart stop"), valued=each_of("-m -o"), own=("postgresql",)),
    "rabbitmqctl": _Tool(
        restart=each_of("stop stop_app shutdown reset force_reset"), valued=each_of("-n -t"), own=("rabbitmq-server",)
    ),
}

# Tools that deploy whatever their files say, with a verb that may stand anywhere.
_DEPLOYERS = {
    "terraform": each_of("apply destroy"),
    "tofu": each_of("apply destroy"),
    "terragrunt": each_of("apply destroy apply-all destroy-all"),
    "pulumi": each_of("up update destroy"),
    "cdk": each_of("deploy destroy"),
    "helmfile": each_of("apply sync destroy delete"),
    "kamal": each_of("deploy redeploy rollback setup boot reboot stop restart remove"),
    "cap": each_of("deploy deploy:restart deploy:rollback deploy:start deploy:stop rollback"),
}

_SYSTEMCTL = each_of(
    "-H --host -M --machine -t --type --state -p --property -P -s --signal --kill-who --kill-whom --kill-value -n",
    "--lines -o --output --root --image --job-mode --what --when --message --preset-mode --drop-in --timestamp -C",
    "--capsule --boot-loader-entry --boot-loader-menu --image-policy --legend",
)
_UNIT_DOWN = each_of(
    "restart stop try-restart condrestart reload-or-restart try-reload-or-restart reload-or-try-restart force-reload"
    " condreload condstop kill freeze"
)
_SYSTEM_DOWN = each_of(
    "reboot poweroff halt kexec soft-reboot isolate default rescue emergency exit switch-root suspend hibernate"
    " hybrid-sleep suspend-then-hibernate sleep"
)
_UNIT_VERBS = _UNIT_DOWN | _SYSTEM_DOWN | each_of("disable mask start enable status show")


_BUS_CALLS = ("RestartUnit", "StopUnit", "KillUnit", "RestartOr", "TryRestart", "Reboot", "PowerOff", "Halt", "KExec")
_OTHER_STOPS = each_of("force-reload kill zap pause shutdown force-shutdown")


def by_table(command: Command) -> Hits:
    """Every tool of the table."""
    tool = _TOOLS[command.name]
    verbs = tool.restart | tool.redeploy | tool.whole
    before, verb, rest = split_verb(command.argv[1:], tool.valued, verbs)
    after, words, _ = parse(rest, tool.valued)
    options = before + after
    if verb is None:
        return
    if tool.own:
        if not verb.static or any(word.text in verbs for word in (verb, *words)):
            yield from ((_RESTART, name) for name in tool.own)
            if command.container is not None:
                yield _RESTART, name_of_container(command)
    elif not verb.static or verb.text in tool.whole:
        yield _RESTART, None
    elif verb.text == "signal" and "signal" in tool.restart:
        if not all_gentle(words[:1]):
            yield from named(_RESTART, words[1:], tool.shape)
    elif verb.text in verbs:
        chosen = values_of(options, "--only", "--domain")
        # With a choice, a word that is no name is the file it is made from.
        names = chosen + [word for word in words if not (chosen and word.static and tool.shape(word.text) is None)]
        if has(options, "--all", "-g"):
            names = []
        kind = _RESTART if verb.text in tool.restart else _REDEPLOY
        yield from named(kind, names[:1] if verb.text == "scale" else names, tool.shape)


def deployer(command: Command) -> Hits:
    """``terraform apply``, ``cap production deploy`` and kin: which services change is in their files."""
    _, words, _ = parse(command.argv[1:])
    if any(word.text in _DEPLOYERS[command.name] or word.maybe_option for word in words):
        yield _REDEPLOY, None


def systemctl(command: Command) -> Hits:
    """``systemctl``: units, and the whole machine."""
    before, verb, rest = split_verb(command.argv[1:], _SYSTEMCTL, _UNIT_VERBS)
    after, words, _ = parse(rest, _SYSTEMCTL, abbreviated=True)
    options = before + after
    if verb is None:
        return
    modes = values_of(options, "--job-mode")
    if not verb.static or verb.text in _SYSTEM_DOWN or any(not one.static or one.text == "isolate" for one in modes):
        yield _RESTART, None
    elif verb.text in _UNIT_DOWN:
        signals = values_of(options, "-s", "--signal")
        if not (verb.text == "kill" and all_gentle(signals)):
            yield from named(_RESTART, words)
    elif verb.text in ("disable", "mask"):
        if any(len(name) > 2 and "--now".startswith(name) for name, _ in options) or some_maybe_option(words):
            yield from named(_RESTART, words)
    elif verb.text == "start" and any(not word.static or word.text.endswith(".target") for word in words):
        # A target may be the one that reboots the machine.
        yield _RESTART, None


def service(command: Command) -> Hits:
    """``service web restart``, ``rc-service``, ``invoke-rc.d``: the name stands before the verb."""
    options, words, _ = parse(command.argv[1:])
    if any(word.splits for word in words[:2]):
        yield _RESTART, None
    elif has(options, "--full-restart", "-R"):
        yield from named(_RESTART, words)
    elif len(words) > 1 and stops(words[1]):
        yield from named(_RESTART, words[:1])


def init_script(command: Command) -> Hits:
    """``/etc/init.d/web restart``."""
    if any(stops(word) for word in command.argv[1:2]):
        yield _RESTART, service_name(command.name)


def upstart(command: Command) -> Hits:
    """``restart web`` and ``stop web``, as upstart's own programs."""
    _, words, _ = parse(command.argv[1:])
    return named(_RESTART, words)


def runit(command: Command) -> Hits:
    """``sv VERB NAME…``: the first letter of most verbs will do."""
    _, words, _ = parse(command.argv[1:], each_of("-w"))
    if words and (not words[0].static or stops(words[0]) or words[0].text[:1] in "dtkxpiq"):
        yield from named(_RESTART, words[1:] if words[0].static else [])


def supervise(command: Command) -> Hits:
    """``svc`` and ``s6-svc``: the letters of the options say what is done. ``s6-rc`` has verbs as well."""
    options, words, _ = parse(command.argv[1:], each_of("-T -w -s -t" if command.name == "s6-rc" else "-T -w -s"))
    if command.name == "s6-rc":
        if any(stops(word) for word in words[:1]) or has(options, "-d", "-D"):
            yield from named(_RESTART, words[1:])
    elif any(name[1:] in "btkirdDxXpqO" for name, _ in options) or has(options, "-s") or some_maybe_option(words):
        yield from named(_RESTART, words)


def bus(command: Command) -> Hits:
    """``busctl`` and kin: the calls that ask systemd for a restart."""
    _, words, _ = parse(command.argv[1:])
    if any(not word.static or any(call in word.text for call in _BUS_CALLS) for word in words):
        yield _RESTART, None


def stops(verb: Word) -> bool:
    """Whether the verb of an init script may take its service down."""
    text = verb.text
    return not verb.static or "restart" in text or "stop" in text or text in _OTHER_STOPS


READERS: dict[str, Reader] = {
    **dict.fromkeys(_TOOLS, by_table),
    **dict.fromkeys(_DEPLOYERS, deployer),
    "systemctl": systemctl,
    "service": service,
    "rc-service": service,
    "invoke-rc.d": service,
    "restart": upstart,
    "stop": upstart,
    "sv": runit,
    "svc": supervise,
    "s6-svc": supervise,
    "s6-rc": supervise,
    "busctl": bus,
    "dbus-send": bus,
    "gdbus": bus,
}
