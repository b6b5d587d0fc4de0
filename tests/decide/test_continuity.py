"""The guard matrix: every reason not to resume, one at a time and against each other."""

import datetime as dt
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from make import ABILITIES, CONTINUITY, NOW, RUNTIME, a_session, surroundings

from supervisor.decide.continuity import OCCASIONS, continuity
from supervisor.model.outcome import Failure
from supervisor.model.session import ContinuityKind, Reason, SessionStatus
from supervisor.model.step import Continuity

PREVIOUS = a_session()
ID = PREVIOUS.session_id
LACKING = replace(RUNTIME, abilities=replace(ABILITIES, resume=False))
CHILD = a_session(id=2, tier=2, parent_session_id=1, continuity=ContinuityKind.RESUME)
REJECTED = replace(CHILD, status=SessionStatus.REJECTED)

# name: (what differs about the record, its siblings, the surroundings) -> the reason
MATRIX = {
    "forced_fresh": (PREVIOUS, (), {"force_fresh": True}, Reason.FORCED_FRESH),
    "began_fresh": (PREVIOUS, (), {"began_fresh": True}, Reason.FORCED_FRESH),
    "cli_cannot_resume": (PREVIOUS, (), {"runtime": LACKING}, Reason.RESUME_UNSUPPORTED),
    "id_never_captured": (replace(PREVIOUS, session_id=None), (), {}, Reason.NO_SESSION_ID),
    "never_got_a_message": (replace(PREVIOUS, messages=0), (), {}, Reason.NO_SESSION_ID),
    "ended_in_context_exhaustion": (replace(PREVIOUS, failure=Failure.CONTEXT_EXHAUSTED), (), {}, Reason.POISONED),
    "ended_in_an_invalid_request": (replace(PREVIOUS, failure=Failure.INVALID_REQUEST), (), {}, Reason.POISONED),
    "rejected_twice": (PREVIOUS, (REJECTED, replace(REJECTED, id=3)), {}, Reason.POISONED),
    "rejected_once": (PREVIOUS, (REJECTED,), {}, Reason.RESUME_REJECTED),
    "was_itself_rejected": (replace(PREVIOUS, status=SessionStatus.REJECTED), (), {}, Reason.RESUME_REJECTED),
    "work_moved_on": (replace(PREVIOUS, epoch=1), (), {}, Reason.EPOCH_CHANGED),
    "other_directory": (PREVIOUS, (), {"work_dir": "/elsewhere"}, Reason.WORK_DIR_CHANGED),
    "other_binary_or_host": (PREVIOUS, (), {"runtime": replace(RUNTIME, id="rt-2")}, Reason.RUNTIME_CHANGED),
    "marked_expired": (replace(PREVIOUS, status=SessionStatus.EXPIRED), (), {}, Reason.SESSION_EXPIRED),
    "too_old": (replace(PREVIOUS, last_message_at=NOW - dt.timedelta(minutes=61)), (), {}, Reason.SESSION_EXPIRED),
    "resumed_too_often": (PREVIOUS, tuple(replace(CHILD, id=n) for n in range(2, 7)), {}, Reason.RESUME_LIMIT),
    "transcript_gone": (PREVIOUS, (), {"transcripts": {ID: False}}, Reason.TRANSCRIPT_MISSING),
    "context_170k_of_200k": (replace(PREVIOUS, context_tokens=170_000), (), {}, Reason.CONTEXT_THRESHOLD),
    "context_not_known": (replace(PREVIOUS, context_tokens=None), (), {}, Reason.CONTEXT_THRESHOLD),
    "window_not_known": (PREVIOUS, (), {"windows": {}}, Reason.CONTEXT_THRESHOLD),
    "next_window_smaller": (PREVIOUS, (), {"windows": {2: 16_000}}, Reason.CONTEXT_THRESHOLD),
}


def decide(previous=PREVIOUS, others=(), *, occasion=Reason.NEXT_TIER, policy=CONTINUITY, **around) -> Continuity:
    return continuity(
        previous, others, tier=2, occasion=occasion, policy=policy, around=surroundings(**around), now=NOW
    )


@pytest.mark.parametrize(("previous", "others", "around", "reason"), MATRIX.values(), ids=MATRIX.keys())
def test_each_guard_turns_a_resume_into_a_handoff_with_its_own_reason(previous, others, around, reason):
    plan = decide(previous, others, **around)

    assert (plan.kind, plan.reason) == (ContinuityKind.HANDOFF, reason)
    assert plan.resume_session_id is None
    assert plan.parent == previous.id


@pytest.mark.parametrize("occasion", sorted(OCCASIONS))
def test_without_a_guard_against_it_the_session_is_resumed_for_the_occasion(occasion):
    plan = decide(occasion=occasion, transcripts={ID: True})

    assert plan == Continuity(
        kind=ContinuityKind.RESUME,
        reason=occasion,
        parent=1,
        resume_session_id=ID,
        context_tokens=15_000,
        context_window=200_000,
        threshold=0.80,
    )


def test_every_reason_of_the_contract_is_an_occasion_or_in_the_matrix():
    assert OCCASIONS | {reason for *_, reason in MATRIX.values()} == set(Reason)


@pytest.mark.parametrize(
    ("tokens", "threshold", "kind"),
    [
        (15_000, 0.80, ContinuityKind.RESUME),
        (160_000, 0.80, ContinuityKind.RESUME),
        (160_001, 0.80, ContinuityKind.HANDOFF),
        (170_000, 0.80, ContinuityKind.HANDOFF),
        (150_000, 0.70, ContinuityKind.HANDOFF),
        (140_000, 0.70, ContinuityKind.RESUME),
    ],
)
def test_the_threshold_is_passed_only_above_it(tokens, threshold, kind):
    plan = decide(replace(PREVIOUS, context_tokens=tokens), policy=replace(CONTINUITY, context_threshold=threshold))

    assert plan.kind is kind
    assert plan.context_ratio == tokens / 200_000


@pytest.mark.parametrize("failure", [Failure.OVERLOADED, Failure.RATE_LIMITED, Failure.NETWORK, Failure.WALL_CLOCK])
def test_trouble_outside_the_conversation_does_not_poison_it(failure):
    assert decide(replace(PREVIOUS, failure=failure)).kind is ContinuityKind.RESUME


def test_a_clock_that_went_back_does_not_expire_a_session():
    future = replace(PREVIOUS, last_message_at=NOW + dt.timedelta(days=2))

    assert decide(future).kind is ContinuityKind.RESUME


def test_a_transcript_that_could_not_be_checked_is_not_held_against_the_session():
    assert decide(transcripts={}).kind is ContinuityKind.RESUME


@given(cases=st.lists(st.sampled_from(sorted(MATRIX)), min_size=1, max_size=5))
def test_no_combination_of_guards_gives_a_resume_or_a_run_without_context(cases):
    others = tuple(s for name in cases for s in MATRIX[name][1])
    around = {key: value for name in cases for key, value in MATRIX[name][2].items()}
    previous = MATRIX[cases[0]][0]

    plan = decide(previous, others, **around)

    assert plan.kind is ContinuityKind.HANDOFF
    assert plan.reason not in OCCASIONS


def test_an_answer_that_is_half_a_resume_cannot_be_expressed():
    with pytest.raises(ValueError, match="names the session"):
        Continuity(kind=ContinuityKind.RESUME, reason=Reason.NEXT_TIER, parent=1)
    with pytest.raises(ValueError, match="names the session"):
        Continuity(kind=ContinuityKind.FRESH, reason=Reason.FIRST_TIER, resume_session_id=ID)
    with pytest.raises(ValueError, match="handoff names"):
        Continuity(kind=ContinuityKind.HANDOFF, reason=Reason.FORCED_FRESH)


def test_the_first_run_of_all_is_fresh_even_when_fresh_is_forced():
    plan = decide(None, occasion=Reason.FIRST_TIER, force_fresh=True)

    assert (plan.kind, plan.reason) == (ContinuityKind.FRESH, Reason.FIRST_TIER)


HOUR_AGO = NOW - dt.timedelta(minutes=61)
OLD = replace(PREVIOUS, last_message_at=HOUR_AGO)
JUST_NOW = {"answered_at": {PREVIOUS.id: NOW - dt.timedelta(minutes=1)}}


@pytest.mark.parametrize("occasion", [Reason.APPROVED, Reason.DENIED])
@pytest.mark.parametrize(
    ("previous", "around", "reason"),
    [
        pytest.param(PREVIOUS, {"began_fresh": True}, None, id="the cycle had begun without resuming"),
        pytest.param(PREVIOUS, {"force_fresh": True}, Reason.FORCED_FRESH, id="somebody wants it fresh now"),
        pytest.param(OLD, JUST_NOW, None, id="a person took an hour"),
        pytest.param(OLD, {"answered_at": {PREVIOUS.id: HOUR_AGO}}, Reason.SESSION_EXPIRED, id="answered an hour ago"),
        pytest.param(OLD, {"answered_at": {99: NOW}}, Reason.SESSION_EXPIRED, id="another question was answered"),
        pytest.param(
            PREVIOUS, {"transcripts": {ID: False}}, Reason.TRANSCRIPT_MISSING, id="there is nothing to resume"
        ),
    ],
)
def test_what_a_person_decided_is_carried_out_in_the_conversation_that_asked(occasion, previous, around, reason):
    plan = decide(previous, occasion=occasion, **around)

    assert plan.reason is (reason or occasion)
    assert (plan.kind is ContinuityKind.RESUME) == (reason is None)


def test_an_answer_makes_no_other_work_younger():
    assert decide(OLD, occasion=Reason.NEXT_TIER, **JUST_NOW).reason is Reason.SESSION_EXPIRED
