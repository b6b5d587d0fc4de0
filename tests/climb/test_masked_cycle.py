"""A whole cycle in which prompt, tools and reports hold secrets: none is stored, handed on or logged."""

from pathlib import Path

import pytest
from climber import bash, scripts, texts
from cycles import Place, scripted_api

from supervisor.model.cycle import EventKind
from supervisor.rehearsal.scenario import Turn

pytestmark = pytest.mark.real_cli

KNOWN = "blue-harbour-seven"
PRINTED = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
NAMED = "rosebud99"
CONFIG = """
pass_env = ["SHOP_TOKEN"]
[guard]
mask_names = ["card_pin"]
[[schedules]]
name = "default"
environment = "The shop is at https://shop.example. Its token is blue-harbour-seven."
"""


def report(needed: bool) -> Turn:
    escalation = {"needed": needed, "reason": f"web refuses {KNOWN}"} if needed else {"needed": False}
    return Turn(
        report={
            "summary": f"I tried {PRINTED}",
            "services": [{"name": "web", "status": "down" if needed else "healthy", "detail": f"card_pin={NAMED}"}],
            "escalation": escalation,
        }
    )


def files(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_no_secret_of_a_cycle_is_stored_handed_on_or_logged(tmp_path, new_cli):
    scenario = scripts(
        (bash("cat settings.env", text=f"I use {KNOWN}."), report(True)),
        (bash("cat settings.env"), report(False)),
    )
    with scripted_api(scenario) as api:
        place = Place(tmp_path, new_cli, base_url=api.base_url, schedules=(), config=CONFIG)
        (place.work / "settings.env").write_text(f"SHOP={KNOWN}\nGIT={PRINTED}\nCARD_PIN={NAMED}\nPORT=8080\n")

        done = place.cycle("--verbose", "--fresh-session", SHOP_TOKEN=KNOWN)

        assert done.exit_code == 0, done.err
        sent = [texts(call.body) for call in api.calls if not call.side]

    [chain] = place.chains()
    with place.store() as store:
        [handed_on] = store.events(cycle_id=chain.cycle.id, kinds=(EventKind.HANDOFF,))
        results = store.events(cycle_id=chain.cycle.id, kinds=(EventKind.TOOL_RESULT,))
    for secret in (KNOWN, PRINTED, NAMED):
        # The tool did print it, and the model was given it: only what is kept is without.
        assert any(secret in text for text in sent)
        assert secret not in str(handed_on.data["handoff"])
        assert secret not in done.out + done.err
        assert [name for name, content in files(place.state).items() if secret.encode() in content] == []
    assert "Tier finished" in done.err
    assert "[masked]" in str(handed_on.data["handoff"])
    assert results[0].text.splitlines() == ["SHOP=[masked]", "GIT=[masked]", "CARD_PIN=[masked]", "PORT=8080"]
    assert [s.report.summary for s in chain.sessions if s.report] == ["I tried [masked]"] * 2
    assert [s.cost_usd is not None for s in chain.sessions] == [True, True]
