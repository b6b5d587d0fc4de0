"""`opsladder run` as a process: what systemd hears, what fires, and what becomes of work when it has to go."""

import queue
import signal
import socket
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

import pytest
from cycles import Place, Started, until
from receiver import receiving

from supervisor.model.cycle import CycleStatus

_RUN = "from supervisor.cli import main; main()"
OFTEN = '[[schedules]]\nname = "often"\nevery = "1s"\nmisfire = "skip"\n'
SELDOM = '[[schedules]]\nname = "seldom"\nevery = "1h"\n'


STUCK = """
import asyncio
from supervisor.service import daemon, scheduler
async def stuck(self):
    await asyncio.Event().wait()
daemon._STUCK_SECONDS = 0.5
scheduler.Scheduler.step = stuck
"""
NEVER_ENDS = """
import asyncio, pathlib
from supervisor.service import crew, daemon
async def never_ends(ladder, request, *, stop):
    pathlib.Path("begun").touch()
    await asyncio.Event().wait()
crew.run_cycle = never_ends
daemon._ENDING_SECONDS = 0.5
"""
RECOVERS_LONG = """
import asyncio, pathlib
from supervisor.service import daemon
async def takes_long(ladder, *, left):
    pathlib.Path("recovering").touch()
    while not pathlib.Path("go").exists():
        await asyncio.sleep(0.01)
daemon.recover = takes_long
daemon._EXTENSION_SECONDS = 0.3
"""
HANGS_IN_RECOVERY = f"""{RECOVERS_LONG}
daemon._RECOVERY_SECONDS = 0.5
"""
SWEEPS_OFTEN = """
from supervisor.service import daemon
daemon.SWEEP_SECONDS = 0.1
"""
SWEEPS_LONG = f"""{SWEEPS_OFTEN}
import itertools, pathlib, sys, time
sweeping = sys.modules["supervisor.climb.sweep"]
def much_to_do(settings, store, now):
    for _ in itertools.count():
        pathlib.Path("sweeping").touch()
        time.sleep(0.01)
        yield sweeping.SweepSummary()
sweeping._expire = much_to_do
"""
# As when the directory that it was started in is gone.
LOADS_ONCE = """
from supervisor.cli import run
real, loaded = run.settings_from_process, []
def loads_once(config):
    if loaded:
        raise FileNotFoundError(2, "No such file or directory")
    loaded.append(config)
    return real(config)
run.settings_from_process = loads_once
"""
# A cycle fails with what nobody thought of: before it is on record, or in its middle.
FAILS_FIRST = """
from supervisor.service import crew
real, failed = crew.run_cycle, []
async def fails_once(ladder, request, *, stop):
    if not failed:
        failed.append(request)
        raise OSError(24, "Too many open files")
    return await real(ladder, request, stop=stop)
crew.run_cycle = fails_once
"""
FAILS_LATER = """
from supervisor.climb import cycle
real, failed = cycle.run_session, []
async def fails_once(*args, **more):
    if not failed:
        failed.append(args)
        raise OSError(24, "Too many open files")
    return await real(*args, **more)
cycle.run_session = fails_once
"""


class Manager:
    """What listens where systemd would."""

    def __init__(self, directory: Path) -> None:
        self.address = str(directory / "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.address)
        self._socket.settimeout(0.1)
        self._heard: queue.Queue[str] = queue.Queue()
        self.said: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                self._heard.put(self._socket.recv(4096).decode())
            except TimeoutError:
                continue

    def heard(self, line: str) -> bool:
        while not self._heard.empty():
            self.said.extend(self._heard.get().splitlines())
        return any(said.startswith(line) for said in self.said)

    def since(self, line: str) -> list[str]:
        """All that was heard after the last such line."""
        self.heard(line)
        return list(takewhile(lambda said: not said.startswith(line), reversed(self.said)))

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    listening = Manager(tmp_path)
    yield listening
    listening.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def configure(place: Place, schedules: str, more: str = "") -> None:
    """Other schedules than the place came with."""
    file = place.root / "opsladder.toml"
    kept = file.read_text().split("[[schedules]]")[0].split("[service]")[0]
    file.write_text(kept + "[service]\ndrain_seconds = 30\n" + more + schedules)


@contextmanager
def serving(place: Place, manager: Manager | None = None, *, prelude: str = "", **env: str) -> Iterator[Started]:
    """The service as a process. ``prelude`` is Python that it does first."""
    told = {} if manager is None else {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "3000000"}
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", prelude + _RUN, "run"]
    started = Started(command, {**place.env, **told, **env}, place.root)
    try:
        yield started
    finally:
        started.let_go()


def statuses(place: Place) -> list[str]:
    return [chain.cycle.status.value for chain in place.chains()]


def until_recorded(place: Place) -> None:
    """Wait until some of what the first agent says is in the records."""
    place.until_reached()
    until(lambda: any(s.messages > 1 for s in place.chains()[0].sessions), what="messages are recorded")


def asked(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return str(answer.read().decode())


def test_it_fires_tells_systemd_and_prometheus_and_leaves_nothing(
    tmp_path: Path, standin: Path, manager: Manager
) -> None:
    place = Place(tmp_path, standin)
    configure(place, OFTEN)
    port = free_port()
    with serving(place, manager, OPSLADDER_WEB__PORT=str(port)) as service:
        until(lambda: manager.heard("READY=1"), what="systemd hears that it is ready")
        until(lambda: statuses(place).count("healthy") >= 2, what="two cycles")
        until(lambda: manager.heard("WATCHDOG=1"), what="a sign of life")
        metrics = asked(port, "/metrics")
        assert '"ok"' in asked(port, "/healthz")
        assert '"ready"' in asked(port, "/readyz")
        service.process.send_signal(signal.SIGTERM)
        done = service.done()

    assert done.exit_code == 0, done.err
    assert manager.heard("STOPPING=1")
    assert manager.heard("STATUS=")
    assert 'opsladder_cycles_total{schedule="often",status="healthy"}' in metrics
    assert {chain.cycle.trigger.value for chain in place.chains()} == {"schedule"}
    assert len({chain.cycle.started_at for chain in place.chains()}) == len(place.chains())
    place.assert_nothing_left()


def test_no_sign_of_life_is_given_for_a_scheduler_that_is_stuck(
    tmp_path: Path, standin: Path, manager: Manager
) -> None:
    place = Place(tmp_path, standin)
    configure(place, SELDOM)
    with serving(place, manager, prelude=STUCK, OPSLADDER_WEB__PORT="0") as service:
        until(lambda: manager.heard("READY=1"), what="it is ready")
        # Otherwise there is one after each of these, so never several without.
        until(lambda: sum(said.startswith("STATUS=") for said in manager.since("WATCHDOG=1")) >= 3, what="silence")
        service.process.send_signal(signal.SIGTERM)
        assert service.done().exit_code == 0


@pytest.mark.parametrize(
    ("prelude", "became"),
    [(FAILS_FIRST, ["skipped", "healthy"]), (FAILS_LATER, ["failed", "healthy"])],
    ids=["before it is on record", "in its middle"],
)
def test_a_schedule_goes_on_after_a_cycle_failed_in_a_way_nobody_thought_of(
    tmp_path: Path, standin: Path, prelude: str, became: list[str]
) -> None:
    place = Place(tmp_path, standin)
    configure(place, OFTEN)
    with serving(place, prelude=prelude, OPSLADDER_WEB__PORT="0") as service:
        until(lambda: statuses(place).count("healthy") >= 2, what="two cycles")
        service.process.send_signal(signal.SIGTERM)
        done = service.done()

    assert done.exit_code == 0, done.err
    assert "Too many open files" in done.err
    assert statuses(place)[:2] == became
    place.assert_nothing_left()


def asked_for_time(manager: Manager) -> int:
    manager.heard("")
    return sum(said.startswith("EXTEND_TIMEOUT_USEC=") for said in manager.said)


def statuses_since(manager: Manager, line: str) -> int:
    return sum(said.startswith("STATUS=") for said in manager.since(line))


def test_while_it_takes_over_what_was_left_more_time_to_start_is_asked_for(
    tmp_path: Path, standin: Path, manager: Manager
) -> None:
    place = Place(tmp_path, standin)
    configure(place, SELDOM)
    with serving(place, manager, prelude=RECOVERS_LONG, OPSLADDER_WEB__PORT="0") as service:
        until(lambda: asked_for_time(manager) >= 3, what="more time is asked for again and again")
        assert not manager.heard("READY=1")
        (place.root / "go").touch()
        until(lambda: manager.heard("READY=1"), what="it is ready")
        until(lambda: statuses_since(manager, "READY=1") >= 2, what="it serves")
        assert not any(said.startswith("EXTEND_") for said in manager.since("READY=1"))
        service.process.send_signal(signal.SIGTERM)
        assert service.done().exit_code == 0


def test_for_a_recovery_that_hangs_no_more_time_is_asked_for_in_the_end(
    tmp_path: Path, standin: Path, manager: Manager
) -> None:
    place = Place(tmp_path, standin)
    configure(place, SELDOM)
    with serving(place, manager, prelude=HANGS_IN_RECOVERY, OPSLADDER_WEB__PORT="0") as service:
        until(lambda: asked_for_time(manager) >= 1, what="more time is asked for")
        # Otherwise it is asked for each time it is said how things are.
        until(lambda: statuses_since(manager, "EXTEND_") >= 3, what="silence")
        service.process.kill()
        service.done()


def test_a_service_that_is_to_end_before_it_was_ready_asks_for_no_time_to_stop(
    tmp_path: Path, standin: Path, manager: Manager
) -> None:
    place = Place(tmp_path, standin)
    configure(place, SELDOM)
    with serving(place, manager, prelude=RECOVERS_LONG, OPSLADDER_WEB__PORT="0") as service:
        until((place.root / "recovering").exists, what="it recovers")
        service.process.send_signal(signal.SIGTERM)
        until(lambda: statuses_since(manager, "EXTEND_") >= 3, what="silence")
        (place.root / "go").touch()
        assert service.done().exit_code == 0


def test_it_sweeps_by_itself(tmp_path: Path, standin: Path) -> None:
    place = Place(tmp_path, standin)
    configure(place, SELDOM)
    with serving(place, prelude=SWEEPS_OFTEN, OPSLADDER_WEB__PORT="0") as service:
        until((place.state / "sweep.lock").exists, what="it has swept")
        service.process.send_signal(signal.SIGTERM)
        assert service.done().exit_code == 0


def test_a_sweep_with_much_to_do_does_not_keep_the_service_from_ending(tmp_path: Path, standin: Path) -> None:
    place = Place(tmp_path, standin)
    configure(place, SELDOM)
    with serving(place, prelude=SWEEPS_LONG, OPSLADDER_WEB__PORT="0") as service:
        until((place.root / "sweeping").exists, what="it sweeps")
        service.process.send_signal(signal.SIGTERM)
        assert service.done().exit_code == 0


def test_a_cycle_under_way_is_let_end_more_time_is_asked_for_and_nothing_is_ready(
    tmp_path: Path, standin: Path, manager: Manager
) -> None:
    place = Place(tmp_path, standin, ways="busy")
    configure(place, OFTEN)
    port = free_port()
    with serving(place, manager, OPSLADDER_WEB__PORT=str(port)) as service:
        place.until_reached()
        service.process.send_signal(signal.SIGTERM)
        until(lambda: manager.heard("EXTEND_TIMEOUT_USEC="), what="more time is asked for")
        with pytest.raises(urllib.error.HTTPError) as not_ready:
            asked(port, "/readyz")
        not_ready.value.close()
        place.go_on()
        done = service.done()

    assert not_ready.value.code == 503
    assert done.exit_code == 0, done.err
    assert statuses(place)[0] == "healthy"
    place.assert_nothing_left()


def test_a_second_wish_to_end_interrupts_and_the_next_service_goes_on(
    tmp_path: Path, standin: Path, manager: Manager
) -> None:
    place = Place(tmp_path, standin, ways="busy")
    configure(place, OFTEN)
    with serving(place, manager, OPSLADDER_WEB__PORT="0") as service:
        until_recorded(place)
        service.process.send_signal(signal.SIGTERM)
        until(lambda: manager.heard("STOPPING=1"), what="it drains")
        service.process.send_signal(signal.SIGTERM)
        assert service.done().exit_code == 0
    cut = place.chains()[0]
    assert (cut.cycle.status, cut.cycle.reason) == (CycleStatus.PAUSED, "interrupted")
    place.assert_nothing_left()

    place.go_on()
    configure(place, SELDOM + '[[schedules]]\nname = "often"\n')
    with serving(place, OPSLADDER_WEB__PORT="0") as service:
        until(lambda: statuses(place)[0] == "healthy", what="the cycle has gone on")
        service.process.send_signal(signal.SIGTERM)
        service.done()
    # The stand-in keeps no transcript, so the context was handed on.
    assert [s.reason.value for s in place.chains()[0].sessions] == ["first_tier", "transcript_missing"]


def test_for_a_cycle_that_cannot_be_ended_no_more_time_is_asked_for_in_the_end(
    tmp_path: Path, standin: Path, manager: Manager
) -> None:
    place = Place(tmp_path, standin)
    configure(place, OFTEN)
    at_once = {"OPSLADDER_SERVICE__DRAIN_SECONDS": "0.1", "OPSLADDER_WEB__PORT": "0"}
    with serving(place, manager, prelude=NEVER_ENDS, **at_once) as service:
        until((place.root / "begun").exists, what="a cycle begins")
        service.process.send_signal(signal.SIGTERM)
        until(lambda: manager.heard("EXTEND_TIMEOUT_USEC="), what="more time is asked for")
        # Otherwise it is asked for at least as often as it is said how things are.
        until(lambda: sum(said.startswith("STATUS=") for said in manager.since("EXTEND_")) >= 3, what="silence")
        service.process.kill()
        service.done()


def test_what_a_person_has_to_know_of_the_last_moments_is_told_before_it_ends(
    tmp_path: Path, standin: Path, manager: Manager
) -> None:
    place = Place(tmp_path, standin, ways="busy")
    with receiving() as receiver:
        configure(place, OFTEN, f'[notify]\ncritical = ["{receiver.url()}"]\n')
        with serving(place, manager, OPSLADDER_WEB__PORT="0") as service:
            until_recorded(place)
            service.process.send_signal(signal.SIGTERM)
            until(lambda: manager.heard("STOPPING=1"), what="it drains")
            service.process.send_signal(signal.SIGTERM)
            assert service.done().exit_code == 0

    assert receiver.titles == ["[warning] often: paused (interrupted)"]


def test_killed_with_cycles_under_way_the_next_service_goes_on_with_them(tmp_path: Path, standin: Path) -> None:
    place = Place(tmp_path, standin, ways="busy")
    configure(place, OFTEN)
    with serving(place, OPSLADDER_WEB__PORT="0") as service:
        until_recorded(place)
        service.process.kill()
        service.done()
    assert statuses(place)[0] == "running"

    place.go_on()
    configure(place, SELDOM + '[[schedules]]\nname = "often"\n')
    with serving(place, OPSLADDER_WEB__PORT="0") as service:
        until(lambda: statuses(place)[0] == "healthy", what="the cycle has gone on")
        service.process.send_signal(signal.SIGTERM)
        service.done()
    place.assert_nothing_left()


def test_a_reload_takes_new_schedules_and_refuses_a_bad_file(tmp_path: Path, standin: Path, manager: Manager) -> None:
    place = Place(tmp_path, standin)
    configure(place, SELDOM)
    with serving(place, manager, OPSLADDER_WEB__PORT="0") as service:
        until(lambda: manager.heard("READY=1"), what="it is ready")
        good = (place.root / "opsladder.toml").read_text()
        (place.root / "opsladder.toml").write_text("[claude\n")
        service.process.send_signal(signal.SIGHUP)
        until(lambda: manager.heard("RELOADING=1"), what="it reloads")
        assert service.process.poll() is None
        (place.root / "opsladder.toml").write_text(good)
        configure(place, OFTEN)
        service.process.send_signal(signal.SIGHUP)
        until(lambda: "healthy" in statuses(place), what="the new schedule fires")
        service.process.send_signal(signal.SIGTERM)
        done = service.done()

    assert done.exit_code == 0
    assert "The new configuration is refused, the old one stays" in done.err
    assert {chain.cycle.schedule for chain in place.chains()} == {"often"}


def test_a_reload_that_fails_in_a_way_nobody_thought_of_leaves_the_old_configuration(
    tmp_path: Path, standin: Path, manager: Manager
) -> None:
    place = Place(tmp_path, standin)
    configure(place, OFTEN)
    with serving(place, manager, prelude=LOADS_ONCE, OPSLADDER_WEB__PORT="0") as service:
        until(lambda: manager.heard("READY=1"), what="it is ready")
        service.process.send_signal(signal.SIGHUP)
        until(lambda: manager.heard("RELOADING=1"), what="it reloads")
        until(lambda: "READY=1" in manager.since("RELOADING=1"), what="it has reloaded")
        before = len(statuses(place))
        until(lambda: len(statuses(place)) > before + 1, what="the old schedule fires")
        service.process.send_signal(signal.SIGTERM)
        done = service.done()

    assert done.exit_code == 0, done.err
    assert "The new configuration cannot be read, the old one stays" in done.err


def test_a_secret_that_comes_with_a_reload_is_masked_in_the_log(
    tmp_path: Path, standin: Path, manager: Manager
) -> None:
    place = Place(tmp_path, standin)
    configure(place, SELDOM)
    secret = "correct-horse-battery"
    with serving(place, manager, OPSLADDER_WEB__PORT="0") as service:
        until(lambda: manager.heard("READY=1"), what="it is ready")
        address = f'[notify]\ncritical = ["json://ops:{secret}@127.0.0.1:1"]\n'
        # Named like the secret, so that the log has something to say about it.
        configure(place, f'[[schedules]]\nname = "{secret}"\nevery = "1s"\n', address)
        service.process.send_signal(signal.SIGHUP)
        until(lambda: statuses(place), what="the new schedule fires")
        service.process.send_signal(signal.SIGTERM)
        done = service.done()

    assert "Firing schedule=[masked]" in done.err
    assert secret not in done.err


def test_a_second_service_on_one_state_directory_is_refused(tmp_path: Path, standin: Path, manager: Manager) -> None:
    place = Place(tmp_path, standin)
    configure(place, SELDOM)
    with serving(place, manager, OPSLADDER_WEB__PORT="0") as service:
        until(lambda: manager.heard("READY=1"), what="it is ready")
        with serving(place, OPSLADDER_WEB__PORT="0") as second:
            refused = second.done()
        service.process.send_signal(signal.SIGTERM)
        service.done()

    assert refused.exit_code == 1
    assert "Another `opsladder run` already serves" in refused.err


def own_prompt(place: Place, text: str) -> None:
    (place.root / "prompts").mkdir(exist_ok=True)
    (place.root / "prompts" / "tier2.md").write_text(text)


def test_a_prompt_that_does_not_render_is_said_and_nothing_runs(tmp_path: Path, standin: Path) -> None:
    place = Place(tmp_path, standin)
    configure(place, OFTEN)
    own_prompt(place, "{{ nobody_knows_this }}")
    with serving(place, OPSLADDER_WEB__PORT="0") as service:
        done = service.done()

    assert done.exit_code == 2
    assert f"{place.root}/prompts/tier2.md:1: " in done.err
    assert place.chains() == []


def test_a_reload_with_a_prompt_that_does_not_render_is_refused(
    tmp_path: Path, standin: Path, manager: Manager
) -> None:
    place = Place(tmp_path, standin)
    configure(place, SELDOM)
    with serving(place, manager, OPSLADDER_WEB__PORT="0") as service:
        until(lambda: manager.heard("READY=1"), what="it is ready")
        own_prompt(place, "{{ nobody_knows_this }}")
        configure(place, OFTEN)
        service.process.send_signal(signal.SIGHUP)
        until(lambda: manager.heard("RELOADING=1"), what="it reloads")
        until(lambda: "READY=1" in manager.since("RELOADING=1"), what="it has reloaded")
        service.process.send_signal(signal.SIGTERM)
        done = service.done()

    assert done.exit_code == 0
    assert "The new configuration is refused, the old one stays" in done.err
    assert f"{place.root}/prompts/tier2.md:1: " in done.err
    assert place.chains() == []


def test_a_prompt_that_is_spoilt_while_it_serves_begins_no_cycle_and_a_person_is_told(
    tmp_path: Path, standin: Path, manager: Manager
) -> None:
    place = Place(tmp_path, standin)
    configure(place, OFTEN)
    own_prompt(place, "Mend it.")
    with serving(place, manager, OPSLADDER_WEB__PORT="0") as service:
        until(lambda: "healthy" in statuses(place), what="the schedule fires")
        own_prompt(place, "{{ nobody_knows_this }}")
        until(lambda: "skipped" in statuses(place), what="a firing is refused")
        service.process.send_signal(signal.SIGTERM)
        service.done()

    refused = next(chain for chain in place.chains() if chain.cycle.status.value == "skipped")
    assert (refused.cycle.reason, refused.sessions) == ("not_started", ())
    assert "tier2.md:1: " in (refused.cycle.detail or "")
    assert [e.level.value for e in place.notices(refused)] == ["critical"]


def test_a_port_that_is_taken_is_said_and_nothing_runs(tmp_path: Path, standin: Path) -> None:
    place = Place(tmp_path, standin)
    configure(place, OFTEN)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with serving(place, OPSLADDER_WEB__PORT=str(taken.getsockname()[1])) as service:
            done = service.done()

    assert done.exit_code == 1
    assert "Set web.host and web.port to an address that is free." in done.err
    assert place.chains() == []


def test_a_firing_without_a_cli_is_on_record_and_a_person_is_told(tmp_path: Path, standin: Path) -> None:
    place = Place(tmp_path, standin)
    configure(place, OFTEN)
    with serving(place, OPSLADDER_WEB__PORT="0", OPSLADDER_CLAUDE__BIN=str(tmp_path / "none")) as service:
        until(lambda: statuses(place), what="the firing is on record")
        service.process.send_signal(signal.SIGTERM)
        service.done()

    first = place.chains()[0]
    assert (first.cycle.status.value, first.cycle.reason) == ("skipped", "not_started")
    assert [e.level.value for e in place.notices(first)] == ["critical"]
