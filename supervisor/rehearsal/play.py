"""Which session plays which tier of a scenario, and how far it has come. No I/O. Used by ``rehearsal.api``."""

from collections.abc import Sequence

from supervisor.rehearsal.scenario import Fault, Scenario, Turn

_PLAYS_KEPT = 10_000


class Play:
    """One session on its way through the turns of its tier."""

    def __init__(self, *, tier: int, attempt: int, turns: Sequence[Turn]) -> None:
        self.tier = tier
        self.attempt = attempt
        self._turns = turns
        self._position = 0
        self._faults_given = 0

    def next_answer(self) -> Turn | Fault | None:
        """What to answer now; ``None`` when the turns are used up."""
        if self._position >= len(self._turns):
            return None
        turn = self._turns[self._position]
        if turn.error and (turn.error.times == 0 or self._faults_given < turn.error.times):
            self._faults_given += 1
            return turn.error
        if not (turn.repeat or turn.usage_limit):
            self._position += 1
            self._faults_given = 0
        return turn


class Cast:
    """Every session and its play.

    ``fallback`` names the tiers for sessions that nobody announced, by their order of appearance; its last one is for
    all that follow. Without it such a session has no play.
    """

    def __init__(self, scenario: Scenario, *, fallback: Sequence[int]) -> None:
        self._scenario = scenario
        self._fallback = fallback
        self._unannounced = 0
        self._attempts: dict[int, int] = {}
        self._plays: dict[str | None, Play] = {}

    def announce(self, session_id: str | None, tier: int) -> Play:
        """Start a new attempt of a tier. A session that is announced again starts again."""
        attempt = self._attempts.get(tier, 0) + 1
        self._attempts[tier] = attempt
        play = Play(tier=tier, attempt=attempt, turns=self._scenario.turns(tier, attempt))
        self._plays[session_id] = play
        while len(self._plays) > _PLAYS_KEPT:
            del self._plays[next(iter(self._plays))]
        return play

    def of(self, session_id: str | None) -> Play | None:
        """The play of the session, as far as it has one."""
        return self._plays.get(session_id)

    def of_or_fallback(self, session_id: str | None) -> Play | None:
        """The play of the session; the first question of an unannounced one gives it a tier."""
        known = self._plays.get(session_id)
        if known or not self._fallback:
            return known
        tier = self._fallback[min(self._unannounced, len(self._fallback) - 1)]
        self._unannounced += 1
        return self.announce(session_id, tier)
