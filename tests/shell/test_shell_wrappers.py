"""A command is found behind whatever starts it, with the place it runs at."""

import pytest
from shell_view import acting, kinds, lines

from supervisor.model.reading import Role
from supervisor.shell import read_shell

TRANSPARENT = {
    "sudo": ("sudo systemctl restart x", "systemctl restart x"),
    "sudo_user": ("sudo -u www-data -- systemctl restart x", "user=www-data systemctl restart x"),
    "sudo_bundle": ("sudo -nHu www-data systemctl restart x", "user=www-data systemctl restart x"),
    "sudo_long": ("sudo --user=www-data --non-interactive systemctl restart x", "user=www-data systemctl restart x"),
    "sudo_assignment": ("sudo A=1 systemctl restart x", "A=1 systemctl restart x"),
    "sudo_shell": ("sudo -s systemctl restart x", "systemctl restart x"),
    "doas": ("doas -u root systemctl restart x", "user=root systemctl restart x"),
    "env": ("env -i A=1 B=2 systemctl restart x", "A=1 B=2 systemctl restart x"),
    "env_unset": ("env -u A -C / systemctl restart x", "systemctl restart x"),
    "env_dash": ("env - systemctl restart x", "systemctl restart x"),
    "env_split": ("env -S 'systemctl restart x'", "systemctl restart x"),
    "absolute": ("/usr/bin/env /usr/bin/systemctl restart x", "/usr/bin/systemctl restart x"),
    "sudo_quiet": ("sudo systemctl restart x 2>/dev/null", "systemctl restart x"),
    "nohup": ("nohup systemctl restart x &", "systemctl restart x"),
    "setsid": ("setsid -f systemctl restart x", "systemctl restart x"),
    "timeout": ("timeout 5 systemctl restart x", "systemctl restart x"),
    "timeout_options": ("timeout -s KILL --kill-after=9 5 systemctl restart x", "systemctl restart x"),
    "nice": ("nice -n 5 systemctl restart x", "systemctl restart x"),
    "nice_number": ("nice -19 systemctl restart x", "systemctl restart x"),
    "ionice": ("ionice -c2 -n 0 systemctl restart x", "systemctl restart x"),
    "chrt": ("chrt -f 10 systemctl restart x", "systemctl restart x"),
    "taskset": ("taskset -c 0 systemctl restart x", "systemctl restart x"),
    "stdbuf": ("stdbuf -oL -eL systemctl restart x", "systemctl restart x"),
    "unbuffer": ("unbuffer systemctl restart x", "systemctl restart x"),
    "watch": ("watch -n 1 systemctl restart x", "systemctl restart x"),
    "watch_text": ("watch -n1 'systemctl restart x'", "systemctl restart x"),
    "watch_exec": ("watch -x systemctl restart x", "systemctl restart x"),
    "time": ("time systemctl restart x", "systemctl restart x"),
    "time_program": ("/usr/bin/time -v -f %e systemctl restart x", "systemctl restart x"),
    "exec": ("exec -a name systemctl restart x", "systemctl restart x"),
    "command": ("command -p systemctl restart x", "systemctl restart x"),
    "builtin": ("builtin systemctl restart x", "systemctl restart x"),
    "coproc": ("coproc systemctl restart x", "systemctl restart x"),
    "eval": ("eval systemctl restart x", "systemctl restart x"),
    "eval_text": ("eval 'systemctl restart' \"x\"", "systemctl restart x"),
    "sh": ("sh -c 'systemctl restart x'", "systemctl restart x"),
    "bash_bundle": ("bash -lc 'systemctl restart x'", "systemctl restart x"),
    "bash_options": ("bash -e -o pipefail +x -c 'systemctl restart x' name arg", "systemctl restart x"),
    "bash_long": ("bash --norc --noprofile -c 'systemctl restart x'", "systemctl restart x"),
    "busybox": ("busybox sh -c 'systemctl restart x'", "systemctl restart x"),
    "shells": ('dash -c "zsh -c \'ksh -c \\"systemctl restart x\\"\'"', "systemctl restart x"),
    "here_document": ("bash <<'E'\nsystemctl restart x\nE", "systemctl restart x"),
    "here_document_unquoted": ("bash <<E\nsystemctl restart \\\nx\nE".replace(" \\\n", " "), "systemctl restart x"),
    "here_string": ("bash <<< 'systemctl restart x'", "systemctl restart x"),
    "here_document_through_sudo": ("sudo bash -s <<'E'\nsystemctl restart x\nE", "systemctl restart x"),
    "su": ("su -c 'systemctl restart x'", "user=root systemctl restart x"),
    "su_user": ("su - www -c 'systemctl restart x'", "user=www systemctl restart x"),
    "su_options_first": ("su -s /bin/sh -c 'systemctl restart x' www", "user=www systemctl restart x"),
    "runuser": ("runuser -u www -- systemctl restart x", "user=www systemctl restart x"),
    "runuser_text": ("runuser www -c 'systemctl restart x'", "user=www systemctl restart x"),
    "strace": ("strace -f -e trace=open systemctl restart x", "systemctl restart x"),
    "ltrace": ("ltrace -f systemctl restart x", "systemctl restart x"),
    "sshpass": ("sshpass -p s ssh h systemctl restart x", "host=h systemctl restart x"),
    "ssh": ("ssh web1 systemctl restart x", "host=web1 systemctl restart x"),
    "ssh_user": ("ssh ops@web1 systemctl restart x", "host=web1 user=ops systemctl restart x"),
    "ssh_login": ("ssh -l ops web1 systemctl restart x", "host=web1 user=ops systemctl restart x"),
    "ssh_options": (
        "ssh -p 22 -o ConnectTimeout=1 -tt ops@web1 -- systemctl restart x",
        "host=web1 user=ops systemctl restart x",
    ),
    "ssh_options_after": ("ssh web1 -p 22 systemctl restart x", "host=web1 systemctl restart x"),
    "ssh_attached": ("ssh -p22 -oBatchMode=yes web1 systemctl restart x", "host=web1 systemctl restart x"),
    "ssh_text": ("ssh web1 'systemctl restart x'", "host=web1 systemctl restart x"),
    "ssh_uri": ("ssh ssh://ops@web1:2222 systemctl restart x", "host=web1 user=ops systemctl restart x"),
    "ssh_here_document": ("ssh web1 <<'E'\nsystemctl restart x\nE", "host=web1 systemctl restart x"),
    "ssh_bash_s": ("ssh web1 'bash -s' <<'E'\nsystemctl restart x\nE", "host=web1 systemctl restart x"),
    "ssh_remote_command": ("ssh -o RemoteCommand='systemctl restart x' web1", "host=web1 systemctl restart x"),
    "ssh_twice": ("ssh a ssh b systemctl restart x", "host=b systemctl restart x"),
    "ssh_sudo_sh": ("ssh web1 \"sudo sh -c 'systemctl restart x'\"", "host=web1 systemctl restart x"),
    "ssh_known_variable": ("h=web1; ssh $h systemctl restart x", "host=web1 systemctl restart x"),
    "docker_exec": ("docker exec web systemctl restart x", "container=web systemctl restart x"),
    "docker_exec_options": (
        "docker --context x exec -it -e A=1 -u root web systemctl restart x",
        "container=web user=root A=1 systemctl restart x",
    ),
    "docker_container_exec": ("docker container exec web systemctl restart x", "container=web systemctl restart x"),
    "podman_exec": ("podman exec --user www web systemctl restart x", "container=web user=www systemctl restart x"),
    "nerdctl_exec": ("nerdctl exec web systemctl restart x", "container=web systemctl restart x"),
    "compose_exec": ("docker compose -f a.yml exec -T web systemctl restart x", "container=web systemctl restart x"),
    "compose_old": ("docker-compose -p p exec web systemctl restart x", "container=web systemctl restart x"),
    "docker_exec_sh": ("docker exec web sh -c 'systemctl restart x'", "container=web systemctl restart x"),
    "kubectl_exec": ("kubectl exec pod -- systemctl restart x", "container=pod systemctl restart x"),
    "kubectl_exec_options": (
        "kubectl -n ns exec -it pod -c ctr -- sh -c 'systemctl restart x'",
        "container=pod systemctl restart x",
    ),
    "kubectl_exec_late_namespace": (
        "kubectl exec pod -n ns -- systemctl restart x",
        "container=pod systemctl restart x",
    ),
    "kubectl_exec_legacy": ("kubectl exec pod systemctl restart x", "container=pod systemctl restart x"),
    "oc_exec": ("oc exec pod -- systemctl restart x", "container=pod systemctl restart x"),
    "oc_rsh": ("oc rsh pod systemctl restart x", "container=pod systemctl restart x"),
    "lxc_exec": ("lxc exec box -- systemctl restart x", "container=box systemctl restart x"),
    "incus_exec": ("incus exec box --user 0 -- systemctl restart x", "container=box systemctl restart x"),
    "lxc_attach": ("lxc-attach -n box -- systemctl restart x", "container=box systemctl restart x"),
    "ip_netns": ("ip netns exec blue systemctl restart x", "systemctl restart x"),
    "xargs_replace": ("a | xargs -I{} systemctl restart x", "systemctl restart x"),
}


@pytest.mark.parametrize(("text", "expected"), TRANSPARENT.values(), ids=TRANSPARENT)
def test_a_wrapped_command_is_found_and_the_wrapper_is_only_that(text: str, expected: str) -> None:
    assert lines(text)[-1] == expected


CARRIERS = {
    "find": ("find . -exec rm -rf {} \\;", ["find . -exec rm -rf {} ;", "rm -rf <{}>"]),
    "find_plus": ("find . -exec rm {} +", ["find . -exec rm {} +", "rm <{}>"]),
    "find_several": (
        "find . -execdir a \\; -okdir b ';'",
        ["find . -execdir a ; -okdir b ;", "a", "b"],
    ),
    "find_sh": ("find . -exec sh -c 'rm x' \\;", ["find . -exec sh -c rm x ;", "rm x"]),
    "fd": ("fd -e log -x rm {}", ["fd -e log -x rm {}", "rm <{}>"]),
    "docker_run": (
        "docker run --rm -v /:/h -p 80:80 img rm x",
        ["docker run --rm -v /:/h -p 80:80 img rm x", "container=img rm x"],
    ),
    "docker_entrypoint": (
        "docker run --entrypoint sh img -c 'rm x'",
        ["docker run --entrypoint sh img -c rm x", "container=img rm x"],
    ),
    "docker_privileged": (
        "docker exec --privileged web rm x",
        ["docker exec --privileged web rm x", "container=web rm x"],
    ),
    "compose_run": ("docker compose run --rm web rm x", ["docker compose run --rm web rm x", "container=web rm x"]),
    "kubectl_debug": (
        "kubectl debug node/n --image=i -- rm x",
        ["kubectl debug node/n --image=i -- rm x", "container=node/n rm x"],
    ),
    "kubectl_run": ("kubectl run p --image=i -- rm x", ["kubectl run p --image=i -- rm x", "container=p rm x"]),
    "chroot": ("chroot --userspec=0:0 /mnt rm x", ["chroot --userspec=0:0 /mnt rm x", "user=0:0 rm x"]),
    "nsenter": ("nsenter -t 1 -m -u -n rm x", ["nsenter -t 1 -m -u -n rm x", "rm x"]),
    "unshare": ("unshare -r --fork rm x", ["unshare -r --fork rm x", "rm x"]),
    "systemd_run": ("systemd-run --scope -p A=1 rm x", ["systemd-run --scope -p A=1 rm x", "rm x"]),
    "machinectl": (
        "machinectl shell ops@box /bin/rm x",
        ["machinectl shell ops@box /bin/rm x", "container=box user=ops /bin/rm x"],
    ),
    "flock": ("flock -n /tmp/l rm x", ["flock -n /tmp/l rm x", "rm x"]),
    "flock_text": ("flock /tmp/l -c 'rm x'", ["flock /tmp/l -c rm x", "rm x"]),
    "script": ("script -qc 'rm x' /dev/null", ["script -qc rm x /dev/null", "rm x"]),
    "strace_writes": ("strace -o out rm x", ["strace -o out rm x", "rm x"]),
    "time_writes": ("time -o out rm x", ["time -o out rm x", "rm x"]),
    "perf": ("perf stat -e cycles rm x", ["perf stat -e cycles rm x", "rm x"]),
    "tmux": ("tmux new -d -s s 'rm x'", ["tmux new -d -s s rm x", "rm x"]),
    "tmux_words": ("tmux new-session -d rm x", ["tmux new-session -d rm x", "rm x"]),
    "screen": ("screen -dmS s rm x", ["screen -dmS s rm x", "rm x"]),
    "parallel": ("parallel rm {} ::: a b", ["parallel rm {} ::: a b", "rm <$argument>"]),
    "parallel_appends": ("ls | parallel -j4 gzip", ["ls", "parallel -j4 gzip", "gzip <$argument>"]),
    "trap": ("trap 'rm x' EXIT", ["trap rm x EXIT", "rm x"]),
    "ssh_proxy": ("ssh -o ProxyCommand='rm x' h ls", ["ssh -o ProxyCommand=rm x h ls", "rm x", "host=h ls"]),
    "ssh_forwards": ("ssh -L 80:a:80 h ls", ["ssh -L 80:a:80 h ls", "host=h ls"]),
    "wrapper_that_writes": ("sudo cat a > out", ["sudo cat a >out", "cat a"]),
    "wrapper_that_is_steered": ("LD_PRELOAD=x sudo ls", ["LD_PRELOAD=x sudo ls", "LD_PRELOAD=x ls"]),
    "wrapper_from_elsewhere": ("/opt/x/sudo ls", ["/opt/x/sudo ls", "ls"]),
    "xargs": ("a | xargs rm -f", ["a", "rm -f <{}>"]),
    "xargs_options": ("a | xargs -0 -n 1 -P4 -r rm", ["a", "rm <{}>"]),
    "xargs_marks": ("a | xargs -I% cp % /b/%", ["a", "cp <%> </b/%>"]),
    "xargs_sh": ("a | xargs -n1 sh -c 'rm \"$0\"'", ["a", "rm <$0>"]),
}


@pytest.mark.parametrize(("text", "expected"), CARRIERS.values(), ids=CARRIERS)
def test_a_program_that_acts_itself_is_reported_beside_what_it_starts(text: str, expected: list[str]) -> None:
    assert lines(text) == expected


PLAIN = {
    "sudo_list": "sudo -l",
    "env": "env",
    "command_v": "command -v docker",
    "timeout_help": "timeout",
    "docker_ps": "docker --context x ps -a",
    "docker_logs": "docker logs --tail 50 $c",
    "compose_ps": "docker compose -f a.yml ps",
    "kubectl_get": "kubectl -n ns get pods -o wide",
    "kubectl_logs": "kubectl logs pod --since=1h",
    "ip_addr": "ip -br addr",
    "crontab_list": "crontab -l",
    "at_list": "at -l",
    "tmux_list": "tmux ls",
    "screen_list": "screen -ls",
    "trap_list": "trap -p",
    "find": "find / -name '*.log' -size +1G",
    "python_version": "python3 --version",
    "json_tool": "python3 -m json.tool f",
    "node_version": "node -v",
    "bash_version": "bash --version",
    "awk": "awk '{print $1}' f",
    "jq": "jq '.a | .b' f",
    "psql": "psql -c 'select 1'",
    "git_alias": "git -c alias.x='!rm y' x",
    "rsync_shell": "rsync -e 'ssh -p 2' a b:",
    "tar_command": "tar xf a --to-command='rm x'",
    "sed_e": "sed '1e rm x' f",
    "lxc_list": "lxc list",
    "machinectl_list": "machinectl list",
    "ionice_pid": "ionice -p 1",
    "taskset_pid": "taskset -p 1",
    "ssh_version": "ssh -V",
}


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_a_command_that_starts_nothing_is_plain_and_wholly_visible(text: str) -> None:
    reading = read_shell(text)
    assert reading.opaque == ()
    (command,) = reading.commands
    assert command.role is Role.PLAIN
    assert len(acting(reading)) == 1


def test_the_way_to_a_command_is_kept_outermost_first() -> None:
    command = read_shell("sudo ssh web1 \"docker exec -u www app sh -c 'timeout 5 ls'\"").commands[-1]
    assert command.via == ("sudo", "ssh", "docker", "sh", "timeout")
    assert (command.host, command.container, command.user) == ("web1", "app", "www")


def test_another_host_is_another_user_and_no_container() -> None:
    command = read_shell("docker exec -u www app ssh web1 ls").commands[-1]
    assert (command.host, command.container, command.user) == ("web1", None, None)


UNKNOWN = {
    "sudo": ("sudo --frobnicate ls", "unknown_wrapper_option"),
    "timeout": ("timeout -q 5 ls", "unknown_wrapper_option"),
    "ssh": ("ssh -o Frob=1 h ls", "unknown_wrapper_option"),
    "ssh_provider": ("ssh -o PKCS11Provider=/tmp/x.so h ls", "unknown_wrapper_option"),
    "docker": ("docker exec --frob web ls", "unknown_wrapper_option"),
    "kubectl": ("kubectl exec --frob pod -- ls", "unknown_wrapper_option"),
    "bash": ("bash --frob -c ls", "unknown_wrapper_option"),
    "missing_value": ("nice -n", "unknown_wrapper_option"),
    "variable_option": ("sudo $opts ls", "wrapper_argument"),
    "variable_host": ("ssh $h ls", "wrapper_argument"),
    "quoted_variable_host": ('ssh "$h" ls', "wrapper_argument"),
    "variable_container": ("docker exec $(docker ps -q) ls", "wrapper_argument"),
    "variable_value": ("kubectl -n $ns exec pod -- ls", "wrapper_argument"),
    "variable_subcommand": ("docker $x web ls", "wrapper_argument"),
    "variable_duration": ('timeout "$t" ls', "wrapper_argument"),
    "glob_argument": ("chroot * ls", "wrapper_argument"),
    "kubectl_ambiguous": ("kubectl exec pod ls -t", "wrapper_argument"),
    "find_without_end": ("find . -exec rm {}", "wrapper_argument"),
    "xargs_shell": ("a | xargs bash", "wrapper_argument"),
    "xargs_wrapper": ("a | xargs sudo", "wrapper_argument"),
}


@pytest.mark.parametrize(("text", "kind"), UNKNOWN.values(), ids=UNKNOWN)
def test_a_wrapper_that_is_not_fully_understood_is_opaque_and_still_reported(text: str, kind: str) -> None:
    assert kinds(text) == {kind}
    assert read_shell(text).commands
