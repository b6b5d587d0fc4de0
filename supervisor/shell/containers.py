"""Commands that run inside a container, a pod or a machine. Pure. Called from ``launch``."""

from collections.abc import Sequence

from supervisor.model.reading import Assignment, OpaqueKind, Role, Word
from supervisor.shell.inner import deeper, run_shell, run_words, variables_set
from supervisor.shell.options import Found, find_options, positional, table
from supervisor.shell.place import Call, Desk, Place
from supervisor.shell.unreadable import Unreadable

_DOCKER = table(
    "c:H:l:Dv",
    "config= context= host= log-level= tls tlscacert= tlscert= tlskey= tlsverify debug version"
    " namespace= address= url= connection= remote root= runroot= storage-driver= cgroup-manager= help",
)
_EXEC = table(
    "dite:u:w:l",
    "detach detach-keys= env= env-file= interactive privileged tty user= workdir= latest preserve-fds=",
)
_RUN = table(
    "ditPqe:h:l:m:p:u:v:w:a:c:",
    "add-host= annotation= attach= blkio-weight= blkio-weight-device= cap-add= cap-drop= cgroup-parent="
    " cgroupns= cidfile= cpu-period= cpu-quota= cpu-rt-period= cpu-rt-runtime= cpu-shares="
    " cpus= cpuset-cpus= cpuset-mems= detach detach-keys= device= device-cgroup-rule= device-read-bps="
    " device-read-iops= device-write-bps= device-write-iops= disable-content-trust dns= dns-option="
    " dns-search= domainname= entrypoint= env= env-file= expose= gpus= group-add= health-cmd= health-interval="
    " health-retries= health-start-period= health-timeout= help hostname= init interactive"
    " ip= ip6= ipc= isolation= kernel-memory= label= label-file= link= link-local-ip= log-driver= log-opt="
    " mac-address= memory= memory-reservation= memory-swap= memory-swappiness= mount= name= net="
    " net-alias= network= network-alias= no-healthcheck oom-kill-disable oom-score-adj= pid= pids-limit="
    " platform= privileged publish= publish-all pull= quiet read-only restart= rm runtime="
    " security-opt= shm-size= sig-proxy stop-signal= stop-timeout= storage-opt= sysctl= tmpfs= tty"
    " ulimit= user= userns= uts= volume= volume-driver= volumes-from= workdir= replace pod= systemd=",
)
_COMPOSE = table(
    "f:p:H:v",
    "file= project-name= project-directory= profile= env-file= ansi= progress= parallel="
    " compatibility dry-run verbose no-ansi all-resources context= host= version help",
)
_COMPOSE_EXEC = table("dTite:u:w:", "detach env= index= no-TTY no-tty privileged user= workdir= interactive tty")
_COMPOSE_RUN = table(
    "dTitPqe:l:p:u:v:w:",
    "build detach entrypoint= env= env-from-file= label= name= no-deps no-TTY no-tty publish= quiet"
    " quiet-build quiet-pull pull= remove-orphans rm service-ports use-aliases user= volume= workdir="
    " cap-add= cap-drop= interactive tty",
)
_KUBECTL = table(
    "n:s:v:c:f:itq",
    "namespace= context= kubeconfig= cluster= user= server= token= as= as-group= as-uid= request-timeout="
    " cache-dir= insecure-skip-tls-verify certificate-authority= client-certificate= client-key="
    " tls-server-name= username= password= match-server-version warnings-as-errors disable-compression"
    " v= container= filename= stdin tty quiet pod-running-timeout= loglevel= no-tty shell=",
)
_LXC = table(
    "nTtq",
    "env= mode= user= group= cwd= disable-stdin force-interactive force-noninteractive project= force-local quiet",
)
_LXC_ATTACH = table(
    "n:P:o:l:e?s:R?qLkv:u:g:",
    "name= lxcpath= logfile= logpriority= elevated-privileges? namespaces= keep-env clear-env uid= gid=",
)
_MACHINECTL = table("qE:H:M:", "quiet setenv= uid= host= machine= no-ask-password no-pager")
_SETS = ("-e", "--env")
_ACTS = ("--privileged", "--detach", "-d", "--env-file")
_OPAQUE_UNLESS_READ = "this may start a command that cannot be told from its options"


def run_docker(desk: Desk, call: Call, place: Place) -> None:
    """``docker``, ``podman`` and ``nerdctl``: exec, run, create and compose start commands; the rest is ordinary."""
    program = _program(call)
    known = find_options(call.words[1:], _DOCKER, program=program)
    verbs = known.rest
    if verbs and verbs[0].text == "container" and len(verbs) > 1:
        verbs = verbs[1:]
    verb = positional(verbs[0], program) if verbs else ""
    if verb == "compose":
        _compose(desk, call, verbs[1:], place, program)
    elif verb == "exec":
        found = find_options(verbs[1:], _EXEC, program=program)
        role = Role.CARRIER if found.has(*_ACTS) else Role.WRAPPER
        _enter(desk, call, found, place, program, role=role)
    elif verb in ("run", "create"):
        found = find_options(verbs[1:], _RUN, program=program)
        _enter(desk, call, found, place, program, role=Role.CARRIER, entrypoint=found.value("--entrypoint"))
    else:
        desk.report(call, place)


def run_compose(desk: Desk, call: Call, place: Place) -> None:
    """``docker-compose`` as a program of its own."""
    _compose(desk, call, call.words[1:], place, _program(call))


def run_kubectl(desk: Desk, call: Call, place: Place) -> None:
    """``kubectl exec POD -- COMMAND`` and its relatives; options may stand anywhere before the dashes."""
    program = _program(call)
    verbs = {"exec", "run", "debug", "rsh"}
    if not any(word.text in verbs or word.maybe_option for word in call.words[1:]):
        desk.report(call, place)
        return
    head = find_options(call.words[1:], _KUBECTL, program=program)
    verb = positional(head.rest[0], program) if head.rest else ""
    if verb not in verbs:
        desk.report(call, place)
        return
    if verb in ("run", "debug"):
        _after_dashes(desk, call, place, program, head.rest[1:])
        return
    found = find_options(head.rest[1:], _KUBECTL, program=program, permute=verb == "exec")
    if not found.rest or (
        verb == "exec" and found.dashed is None and len(found.rest) > 1 and _has_late_option(head.rest)
    ):
        raise Unreadable(OpaqueKind.WRAPPER_ARGUMENT, _text(call), _OPAQUE_UNLESS_READ)
    if found.dashed == 0:
        raise Unreadable(OpaqueKind.WRAPPER_ARGUMENT, _text(call), _OPAQUE_UNLESS_READ)
    command = found.rest[found.dashed :] if found.dashed is not None else found.rest[1:]
    _start(desk, call, command, place, program, container=positional(found.rest[0], program), role=Role.WRAPPER)


def run_lxc(desk: Desk, call: Call, place: Place) -> None:
    """``lxc exec NAME -- COMMAND``."""
    program = _program(call)
    head = find_options(call.words[1:], _LXC, program=program)
    if not head.rest or positional(head.rest[0], program) != "exec":
        desk.report(call, place)
        return
    before = find_options(head.rest[1:], _LXC, program=program)
    if not before.rest:
        raise Unreadable(OpaqueKind.WRAPPER_ARGUMENT, _text(call), _OPAQUE_UNLESS_READ)
    after = find_options(before.rest[1:], _LXC, program=program)
    name = positional(before.rest[0], program)
    extra = variables_set(before, _SETS) + variables_set(after, _SETS)
    _start(desk, call, after.rest, place, program, container=name, role=Role.WRAPPER, extra=extra)


def run_lxc_attach(desk: Desk, call: Call, place: Place) -> None:
    program = _program(call)
    found = find_options(call.words[1:], _LXC_ATTACH, program=program)
    name = found.value("-n", "--name")
    _start(desk, call, found.rest, place, program, container=name.text if name else "", role=Role.WRAPPER)


def run_machinectl(desk: Desk, call: Call, place: Place) -> None:
    program = _program(call)
    head = find_options(call.words[1:], _MACHINECTL, program=program)
    if not head.rest or positional(head.rest[0], program) != "shell":
        desk.report(call, place)
        return
    found = find_options(head.rest[1:], _MACHINECTL, program=program)
    target = positional(found.rest[0], program) if found.rest else ".host"
    user, at, name = target.rpartition("@")
    desk.report(call, place, Role.CARRIER)
    inside = deeper(place, program, container=name, user=user if at else None)
    if len(found.rest) > 1:
        run_words(desk, found.rest[1:], call, inside)
    else:
        run_shell(desk, call, inside)


def run_ip(desk: Desk, call: Call, place: Place) -> None:
    """``ip netns exec NAME COMMAND`` and ``ip vrf exec NAME COMMAND``."""
    texts = [word.text for word in call.words]
    start = next(
        (index for index, text in enumerate(texts) if text and "exec".startswith(text) and text[0] == "e"), None
    )
    family = texts[start - 1] if start is not None and start > 1 else ""
    if start is None or not family or not ("netns".startswith(family) or "vrf".startswith(family)):
        desk.report(call, place)
        return
    if len(texts) < start + 3 or any(text.startswith("-a") for text in texts[:start]):
        raise Unreadable(OpaqueKind.WRAPPER_ARGUMENT, _text(call), _OPAQUE_UNLESS_READ)
    for word in call.words[: start + 2]:
        positional(word, "ip")
    desk.report(call, place, Role.WRAPPER)
    run_words(desk, call.words[start + 2 :], call, deeper(place, "ip"))


def _compose(desk: Desk, call: Call, words: Sequence[Word], place: Place, program: str) -> None:
    head = find_options(words, _COMPOSE, program=program)
    verb = positional(head.rest[0], program) if head.rest else ""
    if verb == "exec":
        found = find_options(head.rest[1:], _COMPOSE_EXEC, program=program)
        role = Role.CARRIER if found.has(*_ACTS) else Role.WRAPPER
        _enter(desk, call, found, place, program, role=role)
    elif verb == "run":
        found = find_options(head.rest[1:], _COMPOSE_RUN, program=program)
        _enter(desk, call, found, place, program, role=Role.CARRIER, entrypoint=found.value("--entrypoint"))
    else:
        desk.report(call, place)


def _enter(
    desk: Desk, call: Call, found: Found, place: Place, program: str, *, role: Role, entrypoint: Word | None = None
) -> None:
    if not found.rest:
        desk.report(call, place)
        return
    name = positional(found.rest[0], program)
    words = found.rest[1:]
    if entrypoint is not None and entrypoint.text:
        words = (*(Word(text=part, dynamic=entrypoint.dynamic) for part in entrypoint.text.split()), *words)
    user = found.value("-u", "--user")
    extra = variables_set(found, _SETS)
    _start(desk, call, words, place, program, container=name, role=role, user=user.text if user else None, extra=extra)


def _start(
    desk: Desk,
    call: Call,
    words: Sequence[Word],
    place: Place,
    program: str,
    *,
    container: str,
    role: Role,
    user: str | None = None,
    extra: Sequence[Assignment] = (),
) -> None:
    if not words:
        desk.report(call, place)
        return
    desk.report(call, place, role)
    run_words(desk, words, call, deeper(place, program, container=container, user=user), extra=extra)


def _after_dashes(desk: Desk, call: Call, place: Place, program: str, words: Sequence[Word]) -> None:
    for index, word in enumerate(words):
        if word.text == "--" and word.static:
            named = next((other.text for other in words[:index] if not other.text.startswith("-")), "")
            _start(desk, call, words[index + 1 :], place, program, container=named, role=Role.CARRIER)
            return
        if word.maybe_option or word.glob:
            raise Unreadable(OpaqueKind.WRAPPER_ARGUMENT, word.text, _OPAQUE_UNLESS_READ)
    raise Unreadable(OpaqueKind.WRAPPER_ARGUMENT, _text(call), _OPAQUE_UNLESS_READ)


def _has_late_option(rest: Sequence[Word]) -> bool:
    """An option after the pod, without dashes before the command: it may belong to either."""
    plain = 0
    for word in rest:
        if word.text.startswith("-"):
            if plain >= 3:
                return True
        else:
            plain += 1
    return False


def _program(call: Call) -> str:
    return call.words[0].text.rpartition("/")[2]


def _text(call: Call) -> str:
    return " ".join(word.text for word in call.words)
