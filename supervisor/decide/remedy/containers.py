"""Restarts and redeployments by docker, podman, compose and their kin. Pure. Called from ``decide.remedy``."""

import posixpath
from collections.abc import Sequence

from supervisor.decide.remedy.words import (
    Hits,
    Options,
    Reader,
    all_gentle,
    container_name,
    each_of,
    file_name,
    has,
    name_in,
    named,
    parse,
    service_name,
    some_maybe_option,
    split_verb,
    surely,
    values_of,
)
from supervisor.model.permission import ActionKind
from supervisor.model.reading import Command, Word

_RESTART, _REDEPLOY = ActionKind.RESTART, ActionKind.REDEPLOY

_GLOBAL = each_of(
    "-c --config --context -H --host -l --log-level --tlscacert --tlscert --tlskey -n --namespace -a --address",
    "--url --connection --identity --root --runroot --storage-driver --cgroup-manager --data-root --snapshotter",
)
_DOWN = each_of("-t --time --timeout -s --signal --filter --cidfile --pod-id-file")
_RUN_FLAGS = each_of(
    "-d --detach -i --interactive -t --tty --rm --init --privileged -P --publish-all --read-only --no-healthcheck",
    "--oom-kill-disable --sig-proxy --disable-content-trust -q --quiet --help --replace --rootfs --no-hosts",
)
_SERVICE_FLAGS = each_of(
    "--force -d --detach -q --quiet --rollback --with-registry-auth --no-resolve-image --no-healthcheck --init",
    "--read-only -t --tty --help",
)
_PLAIN_UPDATE = each_of("--force -d --detach -q --quiet --with-registry-auth --no-resolve-image")
_COMPOSE_GLOBAL = each_of(
    "-f --file -p --project-name --project-directory --profile --env-file --ansi --progress --parallel -c --context",
    "-H --host --log-level --tlscacert --tlscert --tlskey",
)
_COMPOSE_VALUED = each_of(
    "-t --timeout -s --signal --scale --pull --attach --no-attach --exit-code-from --wait-timeout --rmi",
)

_TAKES_DOWN = frozenset({"restart", "stop", "kill", "pause"})
_REMOVES = frozenset({"rm", "remove", "delete", "del"})
_CREATES = frozenset({"run", "create"})
_VERBS = _TAKES_DOWN | _REMOVES | _CREATES
_GROUPS = frozenset({"container", "compose", "service", "stack", "pod", "swarm", "node", "kube", "play", "auto-update"})
_COMPOSE_VERBS = _TAKES_DOWN | frozenset({"rm", "down", "up", "create", "scale", "watch"})


def docker(command: Command) -> Hits:
    """``docker``, ``podman`` and ``nerdctl``."""
    _, verb, rest = split_verb(command.argv[1:], _GLOBAL, _VERBS | _GROUPS)
    if verb is None:
        return
    if not verb.static:
        yield _RESTART, None
    elif verb.text == "compose":
        yield from _compose(rest)
    elif verb.text in ("container", "pod"):
        _, inner, after = split_verb(rest, frozenset(), _VERBS)
        if inner is not None:
            yield from _on_containers(inner, after)
    elif verb.text == "service":
        yield from _swarm_service(rest)
    elif verb.text == "stack":
        yield from _swarm_stack(rest)
    elif verb.text in ("swarm", "node"):
        if _may_be(rest, "leave", "update", "rm", "demote"):
            yield _RESTART, None
    elif verb.text in ("kube", "play"):
        yield from _podman_kube(rest)
    elif verb.text == "auto-update":
        yield _REDEPLOY, None
    else:
        yield from _on_containers(verb, rest)


def compose(command: Command) -> Hits:
    """``docker-compose`` and ``podman-compose``."""
    return _compose(command.argv[1:])


def ctr(command: Command) -> Hits:
    """``ctr``: the tasks of containerd."""
    _, words, _ = parse(command.argv[1:], each_of("-n --namespace -a --address -s --signal --timeout"))
    if not all(word.static for word in words[:2]):
        yield _RESTART, None
        return
    group, verb = [word.text for word in words[:2]] if len(words) > 1 else ("", "")
    if group in ("t", "task", "tasks", "c", "container", "containers") and verb in _TAKES_DOWN | _REMOVES:
        yield from named(_RESTART, words[2:], container_name)
    elif group == "run":
        yield from named(_REDEPLOY, words[2:3], container_name)


def crictl(command: Command) -> Hits:
    """``crictl``: containers and pods by their ids."""
    _, verb, rest = split_verb(
        command.argv[1:],
        each_of("-c --config -r --runtime-endpoint -i --image-endpoint -t --timeout"),
        ("stop", "stopp", "rm", "rmp"),
    )
    if verb is not None and (not verb.static or verb.text in ("stop", "stopp", "rm", "rmp")):
        options, words, _ = parse(rest, each_of("-t --timeout"))
        yield from named(_RESTART, [] if has(options, "-a", "--all") or not verb.static else words)


def _on_containers(verb: Word, arguments: Sequence[Word]) -> Hits:
    if not verb.static:
        yield _RESTART, None
    elif verb.text in _TAKES_DOWN:
        options, words, _ = parse(arguments, _DOWN)
        signals = values_of(options, "-s", "--signal")
        if verb.text == "kill" and all_gentle(signals):
            return
        yield from named(_RESTART, [] if _many(options) else words, container_name)
    elif verb.text in _REMOVES:
        options, words, _ = parse(arguments, _DOWN)
        if has(options, "-f", "--force") or some_maybe_option(words):
            yield from named(_RESTART, [] if _many(options, "-f", "--force") else words, container_name)
    elif verb.text in _CREATES:
        options, _, _ = parse(arguments, flags=_RUN_FLAGS, until_word=True)
        yield from named(_REDEPLOY, values_of(options, "--name"), container_name)


def _many(options: Options, *expected: str) -> bool:
    """Whether the containers are chosen by a property rather than by name."""
    return any(
        name in ("-a", "--all", "-l", "--latest", "--running", "--filter", "-f", "--cidfile", "--pod-id-file")
        for name, _ in options
        if name not in expected
    )


def _swarm_service(arguments: Sequence[Word]) -> Hits:
    verbs = ("update", "rollback", "scale", "create", *_REMOVES)
    _, verb, rest = split_verb(arguments, frozenset(), verbs)
    if verb is None:
        return
    options, words, _ = parse(rest, flags=_SERVICE_FLAGS)
    if not verb.static:
        yield _RESTART, None
    elif verb.text == "update":
        only_again = has(options, "--force") and all(name in _PLAIN_UPDATE for name, _ in options)
        yield from named(_RESTART if only_again else _REDEPLOY, words)
    elif verb.text == "rollback":
        yield from named(_REDEPLOY, words)
    elif verb.text == "scale":
        yield from _scaled(words)
    elif verb.text == "create":
        options, _, _ = parse(rest, flags=_SERVICE_FLAGS, until_word=True)
        yield from named(_REDEPLOY, values_of(options, "--name"))
    elif verb.text in _REMOVES:
        yield from named(_RESTART, words)


def _swarm_stack(arguments: Sequence[Word]) -> Hits:
    valued = each_of("-c --compose-file --resolve-image --orchestrator")
    _, verb, rest = split_verb(arguments, valued, ("deploy", "up", "down", *_REMOVES))
    if verb is None:
        return
    _, words, _ = parse(rest, valued)
    if not verb.static:
        yield _REDEPLOY, None
    elif verb.text in ("deploy", "up"):
        yield from named(_REDEPLOY, words)
    elif verb.text == "down" or verb.text in _REMOVES:
        yield from named(_RESTART, words)


def _podman_kube(arguments: Sequence[Word]) -> Hits:
    """``podman kube play FILE``, ``podman play kube FILE``, ``podman kube down FILE``."""
    _, words, _ = parse(arguments, each_of("--network --configmap --log-driver --log-opt --ip --mac-address"))
    if words and not words[0].static:
        yield _REDEPLOY, None
    elif words and words[0].text in ("play", "kube", "down", "apply"):
        yield from named(_RESTART if words[0].text == "down" else _REDEPLOY, words[1:], file_name)


def _compose(arguments: Sequence[Word]) -> Hits:
    before, verb, rest = split_verb(arguments, _COMPOSE_GLOBAL, _COMPOSE_VERBS)
    if verb is None or (verb.static and verb.text not in _COMPOSE_VERBS):
        return
    # For rm, the letter of the signal means to stop first.
    options, words, _ = parse(rest, _COMPOSE_VALUED - {"-s"} if verb.text == "rm" else _COMPOSE_VALUED)
    signals = values_of(options, "-s", "--signal")
    if not verb.static:
        yield _RESTART, None
    elif surely(before, "--dry-run") or (verb.text == "kill" and all_gentle(signals)):
        return
    elif verb.text == "down" and not words:
        yield _RESTART, _project(before)
    elif verb.text in _TAKES_DOWN or verb.text == "down":
        yield from named(_RESTART, words)
    elif verb.text == "rm":
        # Without asking and without stopping first, only what is already down is removed.
        if has(options, "-s", "--stop") or some_maybe_option(words):
            yield from named(_RESTART, words)
    elif verb.text == "scale":
        yield from _scaled(words)
    elif verb.text == "watch" or has(options, "--watch", "-w"):
        yield _REDEPLOY, None
    elif not surely(options, "--no-recreate"):
        yield from named(_REDEPLOY, words)
        if scales := values_of(options, "--scale"):
            yield from _scaled(scales)


def _scaled(words: Sequence[Word]) -> Hits:
    """``web=3``; to none at all is taking it down."""
    if not words:
        yield _REDEPLOY, None
    for word in words:
        name, equals, count = word.text.partition("=")
        if not word.static or not equals:
            yield _REDEPLOY, None
        else:
            yield _RESTART if count.strip("0") == "" else _REDEPLOY, service_name(name)


def _project(options: Options) -> str | None:
    """What a compose project is called, as far as the options before the verb tell."""
    given = values_of(options, "-p", "--project-name") or values_of(options, "--project-directory")
    if given:
        return name_in(given[-1], service_name)
    files = values_of(options, "-f", "--file")
    return name_in(files[0], _project_of_file) if files else None


def _project_of_file(text: str) -> str | None:
    """Compose calls a project after its directory; a file with a name of its own says more."""
    directory, name = posixpath.split(text)
    if name.startswith(("docker-compose", "compose")):
        return service_name(directory) if posixpath.basename(directory) not in (".", "..") else None
    return file_name(text)


def _may_be(arguments: Sequence[Word], *verbs: str) -> bool:
    return any(not word.static or word.text in verbs for word in arguments[:1])


READERS: dict[str, Reader] = {
    **dict.fromkeys(("docker", "podman", "nerdctl"), docker),
    **dict.fromkeys(("docker-compose", "podman-compose"), compose),
    "ctr": ctr,
    "crictl": crictl,
}
