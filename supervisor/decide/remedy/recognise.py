"""Recognise restarts and redeployments, and the services they concern. Pure. Called by the guard for each shell text.

The name of a service is the same however its restart is spelled, because its cooldown is kept under that name. Taking a
service down counts as a restart: stopping and starting it in two calls is no way around. Machines are not part of the
name, so a service shares one limit on all of them. The parts: ``words`` (arguments, names), and one module for
each family of tools.
"""

from supervisor.decide.remedy import ansible, clusters, containers, hosts, signals
from supervisor.decide.remedy.words import Hits, Reader
from supervisor.model.permission import Remedies, ServiceAction
from supervisor.model.reading import Command, Reading, Role

# These run what they start any number of times, so one attempt cannot be told from a hundred.
_REPEATERS = frozenset({"xargs", "find", "parallel", "watch", "while", "for", "function"})
_SHOWN = 120


def remedies(reading: Reading) -> Remedies:
    """Every restart and redeployment in a text, in order; a service counts once per kind and command."""
    actions: list[ServiceAction] = []
    uncounted: list[str] = []
    for command in reading.commands:
        reader = _reader_of(command)
        if reader is None or command.role is Role.WRAPPER:
            continue
        hits = dict.fromkeys(reader(command))
        actions += [ServiceAction(kind=kind, service=name) for kind, name in hits if name is not None]
        if any(name is None for _, name in hits):
            uncounted.append(
                f"Which services {_shown(command)!r} restarts or redeploys cannot be told beforehand:"
                " name the services one by one."
            )
        elif hits and not _REPEATERS.isdisjoint(command.via):
            uncounted.append(
                f"How often {_shown(command)!r} would run cannot be told beforehand: name the services one by one."
            )
    return Remedies(actions=tuple(actions), uncounted=tuple(uncounted))


def _ansible(command: Command) -> Hits:
    return ansible.ansible(command, _read, _is_known)


_READERS: dict[str, Reader] = {
    **containers.READERS,
    **clusters.READERS,
    **hosts.READERS,
    **signals.READERS,
    **ansible.READERS,
    "ansible": _ansible,
}


def _reader_of(command: Command) -> Reader | None:
    return hosts.init_script if _is_init_script(command.path) else _READERS.get(command.name)


def _read(command: Command) -> Hits:
    reader = _reader_of(command)
    return iter(()) if reader is None else reader(command)


def _is_known(path: str) -> bool:
    return _is_init_script(path) or path.rpartition("/")[2] in _READERS


def _is_init_script(path: str) -> bool:
    return "/init.d/" in path or path.startswith("/etc/rc.d/")


def _shown(command: Command) -> str:
    return " ".join(word.text for word in command.argv)[:_SHOWN]
