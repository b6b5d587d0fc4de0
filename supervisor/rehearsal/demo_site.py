"""A small broken web service made of files: something for a rehearsed ladder to look at and mend. Writes files.

Called from ``opsladder demo`` and the tests with a throw-away directory. It starts no process: "running" is a word in a
file that ``bin/webctl``, plain POSIX sh, reads and writes.
"""

from pathlib import Path

from supervisor.settings import Settings

_WEBCTL = r"""#!/bin/sh
# webctl {status|restart|check-config}: the control command of the practice web server.
set -u
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd) || exit 1
conf=$root/etc/web.conf
log=$root/var/log/web.log
state=$root/run/web.state

note() {
    printf '%s %s\n' "$(LC_ALL=C date -u '+%b %d %H:%M:%S')" "$1" >>"$log"
}

check_config() {
    number=0
    faults=0
    while read -r key value rest; do
        number=$((number + 1))
        case $key in
        '' | '#'*) continue ;;
        listen | upstream)
            case $value in
            *:*[!0-9]* | *: | '') fault="$key needs host:port, found '$value'" ;;
            *:*) fault='' ;;
            *) fault="$key needs host:port, found '$value'" ;;
            esac
            ;;
        workers | keepalive_seconds)
            case $value in
            '' | *[!0-9]*) fault="$key needs a number, found '$value'" ;;
            *) fault='' ;;
            esac
            ;;
        root) fault='' ;;
        *) fault="unknown setting '$key'" ;;
        esac
        [ -z "$rest" ] || fault="$key has more than one value"
        if [ -n "$fault" ]; then
            echo "web.conf line $number: $fault"
            faults=$((faults + 1))
        fi
    done <"$conf"
    [ "$faults" -eq 0 ]
}

case ${1:-} in
status)
    if [ "$(cat "$state")" = running ]; then
        echo "web: running, 4 of 4 workers ready, upstream connected"
    else
        echo "web: stopped, 0 of 4 workers ready; the last start failed, see var/log/web.log"
        exit 3
    fi
    ;;
restart)
    note "restart requested"
    if fault=$(check_config); then
        echo running >"$state"
        note "started, 4 workers, $(grep '^upstream ' "$conf")"
        echo "web: restarted"
    else
        echo stopped >"$state"
        note "start failed: $fault"
        echo "web: start failed: $fault" >&2
        exit 1
    fi
    ;;
check-config)
    check_config && echo "web.conf is valid"
    ;;
*)
    echo "usage: webctl {status|restart|check-config}" >&2
    exit 2
    ;;
esac
"""

_CONF = """\
# The shop's web server
listen 127.0.0.1:8080
root /srv/shop/public
workers 4
keepalive_seconds 30
upstream 127.0.0.1:
"""

_LOG = """\
Nov 03 00:00:02 access log rotated
Nov 03 01:14:37 started, 4 workers, upstream 127.0.0.1:9000
Nov 03 01:59:58 health check passed in 11 ms
Nov 03 02:10:40 deploy 4471 wrote etc/web.conf
Nov 03 02:10:44 restart requested
Nov 03 02:10:44 start failed: web.conf line 6: upstream needs host:port, found '127.0.0.1:'
Nov 03 02:10:59 health check failed: connection refused on 127.0.0.1:8080
Nov 03 02:11:59 health check failed: connection refused on 127.0.0.1:8080
"""


def at_the_demo_site(settings: Settings, directory: Path) -> Settings:
    """The settings for a rehearsal there: its control command is one that no rule of an operator's can know."""
    command = directory / "bin" / "webctl"
    return settings.practising(directory, looks=f"{command} status", acts=f"{command} status|restart|check-config")


def build_demo_site(directory: Path) -> dict[str, str]:
    """Write the broken service into a directory. Returns the placeholders that the demo scenario's commands use."""
    for name in ("bin", "etc", "var/log", "run"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    webctl = directory / "bin" / "webctl"
    webctl.write_text(_WEBCTL, encoding="utf-8")
    webctl.chmod(0o700)
    (directory / "etc" / "web.conf").write_text(_CONF, encoding="utf-8")
    (directory / "var" / "log" / "web.log").write_text(_LOG, encoding="utf-8")
    (directory / "run" / "web.state").write_text("stopped\n", encoding="utf-8")
    return {"dir": str(directory)}
