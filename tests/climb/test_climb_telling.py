"""People are told while a cycle goes on, not only when it is over."""

from cycles import Place, until
from receiver import receiving

from supervisor.model.cycle import EventKind, NewEvent
from supervisor.model.report import Level


def test_a_notice_of_a_cycle_that_still_runs_is_told(tmp_path, standin):
    place = Place(tmp_path, standin, ways="busy", config="[notify]\ngroup_seconds = 0\n")
    with receiving() as receiver:
        started = place.start(OPSLADDER_NOTIFY__WARNING=receiver.url())
        place.until_reached()
        [chain] = place.chains()
        asks = NewEvent(kind=EventKind.NOTICE, at=chain.cycle.started_at, level=Level.WARNING, text="Tier 2 asks.")
        with place.store() as store:
            store.append_events(chain.cycle.id, [asks])

        until(lambda: receiver.messages, what="somebody is told")

        assert started.process.poll() is None
        assert "Tier 2 asks." in receiver.messages[0][1]["message"]
        place.go_on()
        assert started.done().exit_code == 0
    assert len(receiver.messages) == 1
    place.assert_nothing_left()
