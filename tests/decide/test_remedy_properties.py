"""What has to hold however a restart is written: no wrapper, no unknown word and no strange argument hides it."""

import shlex
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.decide.remedy import remedies
from supervisor.model.permission import ActionKind
from supervisor.shell import read_shell

RESTART, REDEPLOY = ActionKind.RESTART, ActionKind.REDEPLOY

COMMANDS = {
    "systemctl restart web.service": RESTART,
    "systemctl -H host kill -s KILL web": RESTART,
    "systemctl disable --now web": RESTART,
    "service web restart": RESTART,
    "rc-service web restart": RESTART,
    "supervisorctl restart web": RESTART,
    "pm2 restart web": RESTART,
    "sv restart web": RESTART,
    "s6-svc -r /run/service/web": RESTART,
    "monit restart web": RESTART,
    "pkill -9 web": RESTART,
    "start-stop-daemon --stop --name web": RESTART,
    "docker --context x restart -t 10 web": RESTART,
    "docker rm -f web": RESTART,
    "docker compose -f x.yml restart web": RESTART,
    "docker compose -p web down": RESTART,
    "docker-compose up -d web": REDEPLOY,
    "docker run -d --name web nginx": REDEPLOY,
    "docker service update --image nginx:2 web": REDEPLOY,
    "docker stack deploy -c x.yml web": REDEPLOY,
    "podman restart web": RESTART,
    "nerdctl restart web": RESTART,
    "ctr -n k8s.io tasks kill web": RESTART,
    "kubectl -n prod rollout restart deploy web": RESTART,
    "kubectl delete pod web-7d9f8b6c5-x2x4z": RESTART,
    "kubectl scale --replicas=0 deploy/web": RESTART,
    "kubectl set image deployment/web app=nginx:2": REDEPLOY,
    "kubectl apply -f web.yaml": REDEPLOY,
    "helm upgrade web ./chart": REDEPLOY,
    "nomad job run web.nomad": REDEPLOY,
    "argocd app sync web": REDEPLOY,
    "flux reconcile kustomization web": REDEPLOY,
    "ansible web1 -m service -a 'name=web state=restarted'": RESTART,
    "ansible-playbook -i hosts web.yml": REDEPLOY,
    "nginx -s stop": RESTART,
}

WRAPPERS: dict[str, Callable[[str], str]] = {
    "sudo": lambda text: f"sudo {text}",
    "sudo -u": lambda text: f"sudo -u root -- {text}",
    "env": lambda text: f"env A=b {text}",
    "nohup": lambda text: f"nohup {text}",
    "timeout": lambda text: f"timeout 5 {text}",
    "sh -c": lambda text: f"sh -c {shlex.quote(text)}",
    "bash -lc": lambda text: f"bash -lc {shlex.quote(text)}",
    "ssh": lambda text: f"ssh host {shlex.quote(text)}",
}
# These make several commands of it, so only a shell may be handed the result.
LISTS: dict[str, Callable[[str], str]] = {
    "cd": lambda text: f"cd x && {text}",
    "subshell": lambda text: f"( {text} )",
    "pipe": lambda text: f"{text} 2>&1 | tail -n 3",
    "if": lambda text: f"if true; then {text}; fi",
}
SHELLS = ("sh -c", "bash -lc", "ssh")

# Unquoted, each of these may become any number of words, even none.
SPLITTING = ("$unknown", "$(which)")
UNKNOWN = ('"$unknown"', *SPLITTING, "*")


@given(
    command=st.sampled_from(sorted(COMMANDS)),
    directory=st.sampled_from(["", "/usr/bin/", "/usr/local/bin/"]),
    layers=st.lists(st.sampled_from([*WRAPPERS, *LISTS]), max_size=4),
    shell=st.sampled_from(SHELLS),
)
@settings(max_examples=300)
def test_no_wrapper_hides_a_restart_or_changes_its_service(
    command: str, directory: str, layers: list[str], shell: str
) -> None:
    text, is_list = directory + command, False
    for layer in layers:
        if layer in LISTS:
            text, is_list = LISTS[layer](text), True
            continue
        if is_list and layer not in SHELLS:
            text = WRAPPERS[shell](text)
        text, is_list = WRAPPERS[layer](text), False
    found = remedies(read_shell(text))
    service = "nginx" if command.startswith("nginx") else "web"
    assert [(action.kind, action.service) for action in found.actions] == [(COMMANDS[command], service)]
    assert found.uncounted == ()


def words_of(command: str) -> list[str]:
    return [shlex.quote(word) for word in shlex.split(command)]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_word_of_unknown_value_in_place_of_another_never_makes_a_restart_disappear(command: str) -> None:
    words = words_of(command)
    for position in range(1, len(words)):
        for unknown in UNKNOWN:
            found = remedies(read_shell(" ".join([*words[:position], unknown, *words[position + 1 :]])))
            assert found.actions or found.uncounted, (position, unknown)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unquoted_value_put_in_anywhere_never_makes_a_restart_disappear(command: str) -> None:
    words = words_of(command)
    for position in range(1, len(words) + 1):
        for unknown in SPLITTING:
            found = remedies(read_shell(" ".join([*words[:position], unknown, *words[position:]])))
            assert found.actions or found.uncounted, (position, unknown)


PROGRAMS = (
    "ansible ansible-playbook argocd busctl cap crictl ctr docker docker-compose flux fuser helm httpd init kexec kill"
    " killall kubectl minikube monit nginx nomad pkill podman pm2 reboot restart rc-service s6-rc s6-svc service"
    " shutdown start-stop-daemon supervisorctl sv svc systemctl terraform /etc/init.d/web"
)
ARGUMENTS = (
    "restart stop kill rollout delete scale set apply up down run compose service stack rm signal job app sync task"
    " exec kubectl argo rollouts web web=0 deploy/web pod web.yaml -f -n -s -l -a -m -fsn --all --name --signal"
    ' --replicas --dry-run --dry-run=client -9 -HUP %1 -- - "" = , / : $x "$x" -$x *'
)


@given(program=st.sampled_from(PROGRAMS.split()), arguments=st.lists(st.sampled_from(ARGUMENTS.split()), max_size=6))
@settings(max_examples=600)
def test_reading_never_fails_and_every_name_is_a_plain_lower_case_word(program: str, arguments: list[str]) -> None:
    found = remedies(read_shell(" ".join([program, *arguments])))
    for action in found.actions:
        assert action.service
        assert action.service == action.service.lower()
        assert not set(action.service) & set(" $*?/,=\"'")
