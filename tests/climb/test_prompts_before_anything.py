"""A prompt that does not render is told before anything runs, whichever tier it is for."""

import shutil
import sys
from pathlib import Path

import pytest
from cycles import Place, Started

from supervisor import shipped

RUN = "from supervisor.cli import main; main()"
DELETE = "Correct it, or delete it to use the shipped one."
WRITE = "`opsladder init` writes the shipped ones."

BROKEN = {
    "misspelt": ("tier2.md", "Mend.\n{{ enviroment }}", "tier2.md:2: ", "'enviroment' is undefined", DELETE),
    "syntax": ("tier3-escalation.md", "{% if %}", "tier3-escalation.md:1: ", "Expected an expression", DELETE),
    "missing part": ("retry.md", 'Again.\n\n{% include "gone.md" %}', "retry.md:3: ", "no prompt gone.md in ", WRITE),
    "a part of others": ("partials/handoff.md", "{{ nope }}", "partials/handoff.md:1: ", "'nope' is undefined", DELETE),
    "only when cut off": (
        "partials/unfinished.md",
        "{% if unfinished %}\n{{ nope }}\n{% endif %}",
        "partials/unfinished.md:2: ",
        "'nope' is undefined",
        DELETE,
    ),
    "only with a delta": ("delta.md", "{{ since.services }}{{ sinc }}", "delta.md:1: ", "does not render", DELETE),
    "not text": ("tier3.md", "Pr\udcfcfe.", "tier3.md: ", "can't decode", DELETE),
    "the system prompt": ("system.md", "Pr\udcfcfe.", "system.md cannot be read", "can't decode", "shipped one."),
}


def write(tmp_path: Path, name: str, text: str) -> Path:
    file = tmp_path / "prompts" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, errors="surrogateescape")
    return file


def opsladder(place: Place, *arguments: str) -> Started:
    return Started([sys.executable, "-c", RUN, *arguments], place.env, place.root)


@pytest.mark.parametrize(("name", "text", "where", "what", "remedy"), BROKEN.values(), ids=BROKEN.keys())
def test_a_prompt_that_does_not_render_is_named_with_its_place_and_the_remedy(
    tmp_path, standin, name, text, where, what, remedy
):
    place = Place(tmp_path, standin, ways="needs healthy")
    write(tmp_path, name, text)

    done = place.cycle("--json")

    assert (done.exit_code, done.out) == (2, "")
    assert f"{tmp_path}/prompts/{where}" in done.err
    assert what in done.err
    assert remedy in done.err
    assert place.chains() == []
    assert not (place.work / "argv.jsonl").exists()
    assert place.processes() == []


def test_prompts_that_are_as_they_were_shipped_run(tmp_path, standin):
    place = Place(tmp_path, standin)
    shutil.copytree(shipped.PROMPTS, tmp_path / "prompts")

    assert place.cycle().exit_code == 0


def test_a_prompt_of_one_s_own_runs(tmp_path, standin):
    place = Place(tmp_path, standin)
    write(tmp_path, "tier1.md", "Look at {{ environment }}.")

    assert place.cycle().exit_code == 0


def test_a_retry_is_refused_too(tmp_path, standin):
    place = Place(tmp_path, standin)
    assert place.cycle().exit_code == 0
    write(tmp_path, "tier2.md", "{{ nobody_knows_this }}")

    done = opsladder(place, "retry", "1").done()

    assert done.exit_code == 2
    assert "prompts/tier2.md:1: " in done.err
    assert len(place.chains()) == 1


def test_a_rehearsal_is_refused_too(tmp_path, standin):
    place = Place(tmp_path, standin)
    write(tmp_path, "tier2.md", "{{ nobody_knows_this }}")

    done = opsladder(place, "rehearse", "healthy").done()

    assert done.exit_code == 2
    assert "prompts/tier2.md:1: " in done.err
    assert not (place.work / "argv.jsonl").exists()
