"""The switch: the newest turn counts, and who, when and why is kept."""

from supervisor.model.guarding import SwitchState
from supervisor.store import Store, open_store
from tests.store.store_examples import NOON, minutes


def test_a_switch_nobody_turned_lets_everything_run(store: Store) -> None:
    assert store.switch() == SwitchState(paused=False)


def test_the_newest_turn_counts_and_says_who_when_and_why(store: Store) -> None:
    paused = store.pause(by="ada", reason="The disks are being replaced.", now=NOON)
    assert paused == SwitchState(paused=True, at=NOON, by="ada", reason="The disks are being replaced.")
    assert store.switch() == paused
    running = store.unpause(by="bob", now=NOON + minutes(5))
    assert store.switch() == running == SwitchState(paused=False, at=NOON + minutes(5), by="bob")


def test_pausing_what_is_paused_gives_a_newer_reason(store: Store) -> None:
    store.pause(by="ada", reason="first", now=NOON)
    store.pause(by="bob", reason=None, now=NOON + minutes(1))
    assert store.switch() == SwitchState(paused=True, at=NOON + minutes(1), by="bob")


def test_a_turn_is_seen_at_once_through_another_connection(store: Store, url: str) -> None:
    with open_store(url) as other:
        assert not other.switch().paused
        store.pause(by="ada", reason=None, now=NOON)
        assert other.switch().paused
