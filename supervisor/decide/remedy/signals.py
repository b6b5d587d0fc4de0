"""Services and machines taken down by signals and by switching off. Pure. Called from ``decide.remedy``."""

from collections.abc import Sequence

from supervisor.decide.remedy.words import (
    Hits,
    Reader,
    all_gentle,
    each_of,
    has,
    is_signal,
    name_of_container,
    named,
    parse,
    service_name,
    some_maybe_option,
    values_of,
)
from supervisor.model.permission import ActionKind
from supervisor.model.reading import Command, Word

_RESTART = ActionKind.RESTART

_PKILL = each_of(
    "-g --pgroup -G --group -P --parent -s --session -t --terminal -u --euid -U --uid -F --pidfile --ns --nslist",
    "-r --runstates --signal -q --queue",
)
_KILLALL = each_of("-s --signal -u --user -o --older-than -y --younger-than -n --ns -Z --context")
_START_STOP = each_of(
    "-n --name -x --exec -p --pidfile -s --signal -R --retry -u --user -c --chuid -a --startas -g --group -d --chdir",
    "-r --chroot -N --nicelevel --ppid --pid -k --umask -I --iosched -P --procsched --notify-timeout",
)
_LISTS = ("-l", "-L", "--list", "--table")


def machine(command: Command) -> Hits:
    """``reboot``, ``shutdown``, ``halt``, ``poweroff``, ``kexec -e``: everything on the machine goes down."""
    options, words, _ = parse(command.argv[1:])
    cancels = command.name == "shutdown" and has(options, "-c")
    only_loads = command.name == "kexec" and not (has(options, "-e", "--exec") or some_maybe_option(words))
    if not (cancels or only_loads):
        yield _RESTART, name_of_container(command)


def run_level(command: Command) -> Hits:
    """``init 6`` and ``telinit 6``; letters like ``q`` only have the settings read again."""
    _, words, _ = parse(command.argv[1:], each_of("-t"))
    if any(not word.static or word.text in ("0", "1", "2", "3", "4", "5", "6", "s", "S") for word in words):
        yield _RESTART, name_of_container(command)


def kill(command: Command) -> Hits:
    """``kill``: a number does not tell whose process it is, unless that of a container."""
    arguments = command.argv[1:]
    if not arguments or arguments[0].text in _LISTS:
        return
    signals, processes = _signal_first(arguments)
    if all_gentle(signals) and not any(word.text[:1] == "-" for word in processes):
        return
    if processes and all(word.text == "$!" or (word.static and word.text[:1] == "%") for word in processes):
        return  # what the same text has put into the background
    yield _RESTART, name_of_container(command)


def kill_by_name(command: Command) -> Hits:
    """``pkill`` and ``killall``: the processes of a service by their name; in a container, the container."""
    arguments = [word for word in command.argv[1:] if not is_signal(word)]
    signals = [word for word in command.argv[1:] if is_signal(word)]
    by_pattern = command.name == "pkill"
    options, words, _ = parse(arguments, _PKILL if by_pattern else _KILLALL)
    signals += values_of(options, "--signal") if by_pattern else values_of(options, "-s", "--signal")
    if all_gentle(signals) or (not by_pattern and arguments and arguments[0].text in _LISTS):
        return
    if command.container is not None:
        yield _RESTART, name_of_container(command)
    else:
        yield from named(_RESTART, [] if by_pattern and has(options, "-F", "--pidfile") else words)


def kill_anything(command: Command) -> Hits:
    """``killall5``, ``skill``, ``fuser -k``: whatever matches goes down."""
    options, words, _ = parse(command.argv[1:], each_of("-n --namespace"))
    if command.name != "fuser" or has(options, "-k", "--kill") or some_maybe_option(words):
        yield _RESTART, name_of_container(command)


def start_stop_daemon(command: Command) -> Hits:
    """``start-stop-daemon --stop`` with a name, a program or a file that holds the process id."""
    options, words, _ = parse(command.argv[1:], _START_STOP, abbreviated=True)
    if any(name == "-K" or (len(name) > 4 and "--stop".startswith(name)) for name, _ in options):
        if not all_gentle(values_of(options, "-s", "--signal")):
            chosen = values_of(options, "-n", "--name", "-x", "--exec", "-p", "--pidfile")
            yield from named(_RESTART, chosen[:1], lambda text: service_name(text.removesuffix(".pid")))
    elif some_maybe_option(words):
        yield _RESTART, None


def _signal_first(arguments: Sequence[Word]) -> tuple[list[Word], Sequence[Word]]:
    """The signal that ``kill`` was given in front, and the processes behind it."""
    first = arguments[0].text
    if first in ("-s", "-n", "--signal"):
        signals, processes = list(arguments[1:2]), arguments[2:]
    elif first.startswith("--signal="):
        signals, processes = [Word(text=first.partition("=")[2], dynamic=arguments[0].dynamic)], arguments[1:]
    elif len(first) > 1 and first[0] == "-" and first != "--":
        signals, processes = [arguments[0]], arguments[1:]
    else:
        signals, processes = [], arguments
    return signals, processes[1:] if processes and processes[0].text == "--" else processes


READERS: dict[str, Reader] = {
    **dict.fromkeys(("reboot", "shutdown", "halt", "poweroff", "kexec"), machine),
    "init": run_level,
    "telinit": run_level,
    "kill": kill,
    "pkill": kill_by_name,
    "killall": kill_by_name,
    "killall5": kill_anything,
    "skill": kill_anything,
    "fuser": kill_anything,
    "start-stop-daemon": start_stop_daemon,
}
