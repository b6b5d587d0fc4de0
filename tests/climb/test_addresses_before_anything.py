"""An address at which nobody can be told is named before anything runs."""

import sys

import pytest
from cycles import Place, Started

RUN = "from supervisor.cli import main; main()"
BAD = '[notify]\ncritical = ["nonsense://x"]\n'


def test_a_cycle_is_refused(tmp_path, standin):
    place = Place(tmp_path, standin, config=BAD)

    done = place.cycle("--json")

    assert (done.exit_code, done.out) == (2, "")
    line = (tmp_path / "opsladder.toml").read_text().splitlines().index('critical = ["nonsense://x"]') + 1
    assert f"opsladder.toml:{line}: notify.critical.1: it is no address that Apprise knows" in done.err
    assert "`opsladder notify test`" in done.err
    assert place.chains() == []
    assert not (place.work / "argv.jsonl").exists()
    assert place.processes() == []


def test_a_retry_is_refused(tmp_path, standin):
    place = Place(tmp_path, standin)
    assert place.cycle().exit_code == 0
    retry = [sys.executable, "-c", RUN, "retry", "1"]

    done = Started(retry, {**place.env, "OPSLADDER_NOTIFY__WARNING": "nonsense://x"}, place.root).done()

    assert done.exit_code == 2
    assert "OPSLADDER_NOTIFY__WARNING: notify.warning.1: " in done.err
    assert len(place.chains()) == 1


@pytest.mark.parametrize("config", ["", '[[schedules]]\nname = "pinged"\nping_url = "http://127.0.0.1:9/"\n'])
def test_a_cycle_that_tells_nobody_does_not_load_apprise(tmp_path, standin, config):
    place = Place(tmp_path, standin, config=config)
    told = "import atexit, sys; atexit.register(lambda: print('apprise' in sys.modules, file=sys.stderr)); "

    done = place.cycle("default", prelude=told)

    assert (done.exit_code, done.err.splitlines()[-1]) == (0, "False")
