"""The first CLI is booted before anything is known of the cycle. It is used wherever it can be, or goes at once."""

from pathlib import Path

from cycles import Place


def counted(standin: Path, starts: Path) -> Path:
    """The stand-in, with a line for each time that it is started for a run."""
    front = standin.with_name("counted")
    front.write_text(f'#!/bin/sh\n[ "$1" = -p ] && echo run >> {starts}\nexec {standin} "$@"\n')
    front.chmod(0o755)
    return front


def test_a_conversation_that_is_handed_off_begins_in_the_cli_that_was_booted_ahead(tmp_path, standin):
    starts = tmp_path / "starts"
    place = Place(tmp_path, counted(standin, starts), ways="needs")
    place.cycle("--max-tier", "1")

    place.cycle("--max-tier", "1")

    handed_off = place.chains()[-1].sessions[0]
    assert (handed_off.continuity, handed_off.reason) == ("handoff", "transcript_missing")
    assert len(starts.read_text().splitlines()) == 2
    place.assert_nothing_left()


def test_one_that_does_not_fit_is_ended_and_another_goes_on(tmp_path, standin):
    starts = tmp_path / "starts"
    place = Place(tmp_path, counted(standin, starts), ways="climbs")
    place.cycle("--max-tier", "1")

    place.cycle("--max-tier", "1")

    resumed = place.chains()[-1].sessions[0]
    assert (resumed.continuity, resumed.reason) == ("resume", "same_incident")
    assert len(starts.read_text().splitlines()) == 3
    place.assert_nothing_left()
