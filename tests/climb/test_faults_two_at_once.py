"""Two commands at once: one cycle per schedule, and schedules side by side."""

from cycles import Place, until

from supervisor.model.session import SessionStatus


def test_of_two_commands_for_one_schedule_one_runs_and_the_other_says_which(tmp_path, standin):
    place = Place(tmp_path, standin, ways="busy")

    pair = [place.start("--json"), place.start("--json")]
    skipped = until(lambda: [s for s in pair if s.process.poll() is not None], what="one of them has left")[0]
    [runs] = [s for s in pair if s is not skipped]
    answer = skipped.done()

    assert answer.exit_code == 5, answer.err
    cycle = answer.document["cycle"]
    running = until(lambda: [c for c in place.chains() if c.cycle.status == "running"], what="the other runs")
    assert (cycle["status"], cycle["reason"]) == ("skipped", "already_running")
    assert cycle["detail"] == f"Schedule default is already running as cycle {running[0].cycle.id}."
    # The CLI that was booted ahead for the skipped one is gone; the other one's works on.
    place.until_reached()
    assert len([p for p in place.processes() if "standin" in p]) == 1
    place.go_on()
    assert runs.done().exit_code == 0
    assert sorted(c.cycle.status for c in place.chains()) == ["healthy", "skipped"]
    assert len((place.work / "argv.jsonl").read_text().splitlines()) == 1
    place.assert_nothing_left()


def test_two_schedules_run_side_by_side(tmp_path, standin):
    place = Place(tmp_path, standin, ways="busy", schedules=("one", "two"))

    pair = [place.start("one"), place.start("two")]
    both = until(
        lambda: [s for c in place.chains() for s in c.sessions if s.status is SessionStatus.ACTIVE and s.messages == 2][
            1:
        ],
        what="both are at work",
    )
    place.go_on()

    assert both
    assert [s.done().exit_code for s in pair] == [0, 0]
    assert {(c.cycle.schedule, c.cycle.status) for c in place.chains()} == {("one", "healthy"), ("two", "healthy")}
    place.assert_nothing_left()
