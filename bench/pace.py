"""How long a scripted model takes to answer. Pure. Used wherever what it costs is held against a whole run.

At once is the worst case: nothing hides what is ours. No model does that, so the same is measured with one that takes
a second for each answer, which is little: a short answer of a small model takes one to two.
"""

from dataclasses import replace

from supervisor.rehearsal.scenario import Scenario

AT_ONCE = 0.0
LIKE_A_MODEL = 1.0


def paced(scenario: Scenario, seconds: float) -> Scenario:
    """The same story, each answer after so many seconds."""
    scripts = [
        replace(script, turns=tuple(replace(turn, delay_seconds=seconds) for turn in script.turns))
        for script in scenario.scripts
    ]
    return replace(scenario, scripts=tuple(scripts))


def in_words(seconds: float) -> str:
    """What the model does, for a line of the output."""
    return f"a model that takes {seconds:g} s for each answer" if seconds else "a model that answers at once"
