"""Log lines hold no secrets: not in the sentence, not in its fields, not in an exception."""

import logging
from collections.abc import Iterator

import pytest

from supervisor.cli import logs
from supervisor.decide.masking import Masker

KNOWN = "correct-horse-battery"
logger = logging.getLogger("supervisor.test")


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("supervisor")
    before = (root.handlers[:], root.level, ours.level)
    yield
    root.handlers[:], level, our_level = before
    root.setLevel(level)
    ours.setLevel(our_level)


def test_what_looks_like_a_secret_is_masked_before_the_settings_are_known(capsys):
    logs.set_up(verbose=False)

    logger.warning("It said password=hunter2", extra={"tier": 2})

    assert capsys.readouterr().err.endswith("warning: It said password=[masked] tier=2\n")


def test_a_known_secret_is_masked_in_sentence_fields_and_exception(capsys):
    logs.set_up(verbose=False)
    logs.keep_secret(Masker(values=[KNOWN], names=["pin"]))

    try:
        raise ValueError(f"cannot use {KNOWN}")
    except ValueError:
        logger.exception("It said %s", KNOWN, extra={"why": f'the "{KNOWN}"', "pin": "two words", "context_tokens": 5})

    written = capsys.readouterr().err
    assert KNOWN not in written
    assert 'It said [masked] why="the \\"[masked]\\"" pin="[masked]" context_tokens=5\n' in written
    assert "ValueError: cannot use [masked]" in written
