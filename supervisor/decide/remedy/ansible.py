"""Restarts and redeployments by Ansible. Pure. Called from ``decide.remedy``."""

import posixpath
import re
from collections.abc import Callable, Iterator

from supervisor.decide.remedy.words import (
    Hits,
    Reader,
    each_of,
    file_name,
    has,
    named,
    parse,
    service_name,
    values_of,
)
from supervisor.model.permission import ActionKind
from supervisor.model.reading import Command, Word

_RESTART, _REDEPLOY = ActionKind.RESTART, ActionKind.REDEPLOY

_VALUED = each_of(
    "-i --inventory --inventory-file -e --extra-vars -l --limit -t --tags --skip-tags -u --user -f --forks",
    "-c --connection --private-key --key-file -T --timeout --vault-id --vault-password-file --vault-pass-file",
    "--start-at-task -M --module-path --become-user --become-method --become-password-file --become-pass-file",
    "--connection-password-file --conn-pass-file --ssh-common-args --ssh-extra-args --scp-extra-args",
    "--sftp-extra-args --task-timeout --playbook-dir -P --poll -B --background",
)
_AD_HOC = _VALUED - {"-t", "--tags", "--skip-tags"} | each_of("-m --module-name -a --args -t --tree")

_SERVICES = each_of("service systemd systemd_service sysvinit openrc runit supervisorctl monit pm2 win_service svc")
_CONTAINERS = each_of("docker_container podman_container docker_swarm_service docker_stack")
_DEPLOYMENTS = each_of("docker_compose docker_compose_v2 k8s k8s_scale helm nomad_job terraform podman_play")
_MACHINES = frozenset({"reboot", "win_reboot", "shutdown"})
_SHELLS = frozenset({"command", "shell", "raw", "win_command", "win_shell", "expect"})
_DOWN = frozenset({"restarted", "stopped", "killed", "absent", "paused", "once", "restart", "stop"})
_SHOWS_ONLY = ("-C", "--check", "--syntax-check", "--list-tasks", "--list-hosts", "--list-tags", "--version")
_NAMES = ("name", "release_name", "service", "services", "project_name", "stack")


def ansible(command: Command, read: Callable[[Command], Hits], known: Callable[[str], bool]) -> Hits:
    """One module on some machines. A command line in it is read by ``read``, as far as its programs are ``known``."""
    options, words, _ = parse(command.argv[1:], _AD_HOC, abbreviated=True)
    modules = values_of(options, "-m", "--module-name")
    arguments = values_of(options, "-a", "--args")
    module = modules[-1] if modules else Word(text="command")
    text = arguments[-1].text if arguments else ""
    if not module.static or any(word.splits or (word.maybe_option and len(words) > 1) for word in words):
        yield _RESTART, None
        return
    name = module.text.rpartition(".")[2]
    if has(options, *_SHOWS_ONLY):
        return
    changes_services = name in _SERVICES or name in _CONTAINERS or name in _DEPLOYMENTS
    unknown = bool(arguments) and not arguments[-1].static
    if name in _MACHINES or (unknown and (changes_services or name in _SHELLS)):
        yield _RESTART, None
    elif name in _SHELLS:
        yield from _command_lines(text, read, known)
    elif changes_services:
        yield from _module(name, text)


def playbook(command: Command) -> Hits:
    """``ansible-playbook``: a playbook counts by the name of its file."""
    options, words, _ = parse(command.argv[1:], _VALUED, abbreviated=True)
    if not has(options, *_SHOWS_ONLY):
        yield from named(_REDEPLOY, words, file_name)


def pull(_: Command) -> Hits:
    """``ansible-pull``: the playbook is fetched first."""
    yield _REDEPLOY, None


def _module(module: str, text: str) -> Hits:
    values = dict(_settings(text))
    state = values.get("state", "")
    names = next((values[key] for key in _NAMES if values.get(key)), "")
    takes_down = state in _DOWN or "{" in state or values.get("restart", "no").lower() in ("yes", "true", "on", "1")
    if module in _SERVICES and not takes_down:
        return
    kind = _RESTART if takes_down else _REDEPLOY
    for name in names.split(","):
        yield kind, service_name(name.strip())


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """``name=web state=restarted``, or the same as JSON."""
    for key, quoted, plain in re.findall(r"""["']?(\w+)["']?\s*[=:]\s*(?:["']([^"']*)["']|([^\s,}"']+))""", text):
        yield key.lower(), quoted or plain


def _command_lines(text: str, read: Callable[[Command], Hits], known: Callable[[str], bool]) -> Hits:
    """The commands of a text for a remote shell. What is quoted or computed in it is not looked into."""
    unusual = r"[^\w./:@%+=\s-]"
    for line in re.split(r"[|&;\n]+", text):
        if re.search(unusual, "".join(line.split()[:1])):
            yield _RESTART, None  # whatever the program is, it is not named plainly
            continue
        tokens = [token.rpartition("=")[2] for token in re.split(r"[^\w./:@%+=-]+", line) if token]
        found = next((index for index, token in enumerate(tokens) if known(token)), None)
        if found is None:
            continue
        if re.search(unusual, line):
            yield _RESTART, None
            continue
        argv = tuple(Word(text=token) for token in (tokens[found], *line.split()[found + 1 :]))
        path = argv[0].text
        yield from read(Command(name=posixpath.basename(path), path=path, argv=argv, words=(), options=()))


READERS: dict[str, Reader] = {"ansible-playbook": playbook, "ansible-pull": pull}
