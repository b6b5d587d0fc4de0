"""Which waiting messages go to whom now, and what becomes of them."""

import datetime as dt
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.decide.dispatch import (
    LEASE,
    SHOWN_TOGETHER,
    WAITS,
    Envelope,
    Plan,
    Standing,
    Target,
    compose,
    plan,
    settle,
    standing_of,
    told_by_target,
)
from supervisor.model.delivery import Delivery, DeliveryStatus
from supervisor.model.report import Level

NOON = dt.datetime(2026, 3, 1, 12, 0, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)
INFO, WARNING, CRITICAL = Level
CHAT = Target(key="chat", levels=frozenset({WARNING, CRITICAL}))
PAGER = Target(key="pager", levels=frozenset({CRITICAL}))


def waiting(number: int, level: Level = WARNING, *, due_in: float = 0, attempts: int = 0, **fields: object) -> Delivery:
    return Delivery(
        id=number,
        level=level,
        topic=f"topic {number}",
        title=f"title {number}",
        body=f"body {number}",
        status=DeliveryStatus.WAITING,
        next_try_at=NOON + due_in * MINUTE,
        attempts=attempts,
        **({"created_at": NOON} | fields),
    )


def sent(made: Plan) -> dict[str, list[int]]:
    return {envelope.target: [d.id for d in envelope.deliveries] for envelope in made.envelopes}


def planned(
    deliveries: list[Delivery],
    targets: tuple[Target, ...] = (CHAT, PAGER),
    told: dict[str, list[dt.datetime]] | None = None,
    *,
    max_per_hour: int = 20,
    at_once: bool = False,
) -> Plan:
    return plan(deliveries, targets, told or {}, max_per_hour=max_per_hour, at_once=at_once, now=NOON)


PLANS = {
    "nothing waits": ([], {}),
    "nothing is due": ([waiting(1, due_in=0.5)], {}),
    "what is due goes to those who are told of its level": ([waiting(1)], {"chat": [1]}),
    "critical goes to both": ([waiting(1, CRITICAL)], {"chat": [1], "pager": [1]}),
    "several for one target are one message": (
        [waiting(1), waiting(2, CRITICAL), waiting(3)],
        {"chat": [1, 2, 3], "pager": [2]},
    ),
    "what waits to be grouped goes along": ([waiting(1), waiting(2, due_in=0.4)], {"chat": [1, 2]}),
    "what is tried again waits for its time": ([waiting(1), waiting(2, due_in=4, attempts=2)], {"chat": [1]}),
    "what a clock that was put back meanwhile made is due": (
        [waiting(1, due_in=180, created_at=NOON + 180 * MINUTE), waiting(2, due_in=180, attempts=1)],
        {"chat": [1, 2]},
    ),
    "what a clock that was put back made and was tried since waits for its time": (
        [waiting(1, due_in=5, created_at=NOON + 180 * MINUTE, attempts=2), waiting(2, due_in=720, attempts=7)],
        {},
    ),
    "who has it already is left out": (
        [waiting(1, CRITICAL, attempts=1, error=Standing(reached={"pager": NOON}, missed={"chat": "x"}).as_text())],
        {"chat": [1]},
    ),
}


@pytest.mark.parametrize(("deliveries", "goes"), PLANS.values(), ids=PLANS.keys())
def test_what_goes_to_whom(deliveries: list[Delivery], goes: dict[str, list[int]]) -> None:
    assert sent(planned(deliveries)) == goes


def test_at_once_waits_for_nothing_to_group_but_not_for_what_failed() -> None:
    assert sent(planned([waiting(1, due_in=0.5), waiting(2, due_in=4, attempts=1)], at_once=True)) == {"chat": [1]}


def test_what_nobody_is_told_of_any_more_is_named() -> None:
    made = planned([waiting(1, INFO), waiting(2)])
    assert ([d.id for d in made.nobody], sent(made)) == ([1], {"chat": [2]})


def test_at_its_ceiling_a_target_gets_only_what_is_critical() -> None:
    told = {"chat": [NOON - 5 * MINUTE, NOON - 30 * MINUTE]}
    deliveries = [waiting(1), waiting(2, CRITICAL)]
    assert sent(planned(deliveries, told=told, max_per_hour=2)) == {"chat": [2], "pager": [2]}


def test_what_was_told_more_than_an_hour_ago_leaves_room() -> None:
    told = {"chat": [NOON - 60 * MINUTE, NOON - 5 * MINUTE]}
    assert sent(planned([waiting(1)], told=told, max_per_hour=2)) == {"chat": [1]}


def test_what_was_told_by_a_clock_that_was_put_back_since_leaves_room() -> None:
    told = {"chat": [NOON + 180 * MINUTE, NOON + MINUTE]}
    assert sent(planned([waiting(1)], told=told, max_per_hour=2)) == {"chat": [1]}
    assert sent(planned([waiting(1)], told=told, max_per_hour=1)) == {}


def test_the_last_message_below_the_ceiling_says_until_when_others_are_held_back() -> None:
    [envelope] = planned([waiting(1)], told={"chat": [NOON - 20 * MINUTE]}, max_per_hour=2).envelopes
    assert envelope.full_until == NOON + 40 * MINUTE
    assert "held back until 12:40 UTC" in compose(envelope)[2]
    [before] = planned([waiting(1)], told={"chat": [NOON - 20 * MINUTE]}, max_per_hour=3).envelopes
    assert before.full_until is None
    assert "held back" not in compose(before)[2]


def test_messages_that_reached_only_some_count_for_those() -> None:
    partly = waiting(1, CRITICAL, error=Standing(reached={"chat": NOON}, missed={"pager": "x"}).as_text())
    told = told_by_target((CHAT, PAGER), {(WARNING, NOON - MINUTE)}, [partly])
    assert told == {"chat": {NOON, NOON - MINUTE}, "pager": set()}


SETTLED = {
    "all have it": (1, {"chat": None, "pager": None}, DeliveryStatus.SENT, 0),
    "one missed it": (1, {"chat": None, "pager": "refused"}, DeliveryStatus.WAITING, 1),
    "both missed it": (1, {"chat": "x", "pager": "y"}, DeliveryStatus.WAITING, 1),
    "one is at its ceiling": (1, {"pager": None}, DeliveryStatus.WAITING, 1),
    "one is at its ceiling for the hundredth time": (100, {"pager": None}, DeliveryStatus.WAITING, 1),
}


@pytest.mark.parametrize(("attempts", "results", "status", "minutes"), SETTLED.values(), ids=SETTLED.keys())
def test_what_becomes_of_a_message(
    attempts: int, results: dict[str, str | None], status: DeliveryStatus, minutes: int
) -> None:
    settled = settle(waiting(1, CRITICAL, attempts=attempts), (CHAT, PAGER), results, now=NOON)

    assert (settled.status, settled.next_try_at) == (status, NOON + minutes * MINUTE)
    assert settled.sent_at == (NOON if status is DeliveryStatus.SENT else None)
    kept = standing_of(replace(waiting(1), error=settled.error))
    assert set(kept.missed) == ({"chat", "pager"} - {k for k, why in results.items() if why is None})


@pytest.mark.parametrize("room_after", [2, 40, 24 * 60])
def test_who_is_at_its_ceiling_waits_only_for_room_whatever_becomes_of_a_target_that_is_down(room_after: int) -> None:
    targets = (CHAT, replace(CHAT, key="down"))
    delivery, tries = waiting(1), []
    for minute in range(24 * 60 + 2):
        now = NOON + minute * MINUTE
        told = {"chat": [now] if minute < room_after else []}
        made = plan([delivery], targets, told, max_per_hour=1, at_once=False, now=now)
        if not made.envelopes:
            continue
        tries.append((minute, sorted(sent(made))))
        results = {envelope.target: "refused" if envelope.target == "down" else None for envelope in made.envelopes}
        settled = settle(replace(delivery, attempts=delivery.attempts + 1), targets, results, now=now)
        kept = {"status": settled.status, "next_try_at": settled.next_try_at, "error": settled.error}
        delivery = replace(delivery, attempts=delivery.attempts + 1, **kept)
        if settled.status is not DeliveryStatus.WAITING:
            break

    at = [sum((wait // MINUTE for wait in WAITS[:count]), 0) for count in range(len(WAITS) + 1)]
    assert [minute for minute, who in tries if "down" in who] == at
    assert [minute for minute, who in tries if "chat" in who] == [room_after]
    assert (delivery.status, set(standing_of(delivery).reached)) == (DeliveryStatus.FAILED, {"chat"})


def test_a_message_is_over_when_the_target_that_missed_it_is_taken_away() -> None:
    missed = Standing(reached={"chat": NOON}, missed={"gone": "refused"}, failed={"gone": 1}, again_at={"gone": NOON})
    made = planned([waiting(1, attempts=1, error=missed.as_text()), waiting(2)])
    assert ([d.id for d in made.over], sent(made)) == ([1], {"chat": [2]})


def test_a_target_that_was_taken_away_is_not_waited_for() -> None:
    before = Standing(reached={"chat": NOON}, missed={"gone": "refused"})
    delivery = waiting(1, attempts=2, error=before.as_text())
    assert settle(delivery, (CHAT,), {}, now=NOON).status is DeliveryStatus.SENT


def test_a_target_that_is_back_after_it_was_taken_away_waits_for_its_time() -> None:
    away = Standing(missed={"chat": "refused"}, failed={"pager": 1}, again_at={"pager": NOON + MINUTE})
    delivery = waiting(1, CRITICAL, attempts=2, error=away.as_text())
    settled = settle(delivery, (CHAT, PAGER), {"chat": None}, now=NOON)
    assert (settled.status, settled.next_try_at) == (DeliveryStatus.WAITING, NOON + MINUTE)


def test_waits_grow_and_end_within_a_day() -> None:
    assert list(WAITS) == sorted(WAITS)
    assert [wait / MINUTE for wait in WAITS[:4]] == [1, 5, 15, 60]
    assert dt.timedelta(hours=20) < sum(WAITS, dt.timedelta()) < dt.timedelta(days=1)


def test_a_claim_runs_out_only_after_any_attempt_is_over() -> None:
    from supervisor.notify.deliver import ATTEMPT_SECONDS

    assert dt.timedelta(seconds=3 * ATTEMPT_SECONDS) < LEASE


def test_a_group_begins_with_the_gravest_and_is_cut_short() -> None:
    deliveries = [waiting(n) for n in range(1, 20)] + [waiting(20, CRITICAL)]
    level, title, body = compose(Envelope(target="chat", deliveries=tuple(deliveries)))

    assert (level, title) == (CRITICAL, "[critical] title 20 (and 19 more)")
    assert body.startswith("[critical] title 20\nbody 20\n\n[warning] title 1\nbody 1\n\n")
    assert body.endswith(f"And {20 - SHOWN_TOGETHER} more: `opsladder notify list`.")


def test_a_single_message_is_sent_as_it_is() -> None:
    assert compose(Envelope(target="chat", deliveries=(waiting(1),))) == (WARNING, "[warning] title 1", "body 1")


ROWS = st.lists(
    st.builds(
        waiting,
        st.integers(1, 10_000),
        st.sampled_from(Level),
        due_in=st.sampled_from([-1, 0, 0.5, 4]),
        attempts=st.integers(0, 3),
    ),
    unique_by=lambda d: d.id,
    max_size=20,
)


@given(ROWS, st.integers(1, 3), st.integers(0, 4), st.booleans())
def test_whatever_waits_nobody_gets_it_twice_or_unasked_and_nothing_critical_is_left(
    rows: list[Delivery], max_per_hour: int, already: int, at_once: bool
) -> None:
    told = {"chat": [NOON - number * MINUTE for number in range(already)]}
    made = planned(rows, told=told, max_per_hour=max_per_hour, at_once=at_once)

    by_key = {target.key: target for target in (CHAT, PAGER)}
    assert len(made.envelopes) == len({envelope.target for envelope in made.envelopes})
    for envelope in made.envelopes:
        ids = [d.id for d in envelope.deliveries]
        assert ids
        assert len(ids) == len(set(ids))
        assert all(d.level in by_key[envelope.target].levels for d in envelope.deliveries)
    going = sent(made)
    for row in rows:
        if row.next_try_at <= NOON and row.level is CRITICAL:
            assert row.id in going["chat"]
            assert row.id in going["pager"]
        if row.attempts and row.next_try_at > NOON:
            assert all(row.id not in ids for ids in going.values())
