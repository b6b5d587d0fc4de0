"""Prometheus itself reads what opsladder tells, and the rules and the dashboard ask for what there is."""

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from test_metrics import CHAIN, CONTRACT, climb, text_of

from supervisor.model.outcome import Failure
from supervisor.settings import Settings
from supervisor.store import Store, open_store
from supervisor.web.app import make_app
from tests.web.prometheus import RULES, Prometheus, eventually, promtool, running_prometheus
from tests.web.served import NOW, served, service, settings_in

DASHBOARD = json.loads((RULES.parent / "grafana-dashboard.json").read_text(encoding="utf-8"))
RULE_TESTS = Path(__file__).with_name("prometheus_rules_test.yml")
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
SUFFIXES = re.compile(r"_(total|bucket|sum|count)$")

pytestmark = pytest.mark.xdist_group("prometheus")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return settings_in(tmp_path_factory.mktemp("scraped"), "[budget]\nper_day_usd = 20")


@pytest.fixture(scope="module")
def store(settings: Settings) -> Iterator[Store]:
    with open_store(settings.database_url()) as opened:
        climb(opened)
        yield opened


@pytest.fixture(scope="module")
def prometheus(store: Store, settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that has scraped a real server at least once."""
    app = make_app(service(store, settings, next_fires=lambda: {"default": NOW}))
    with served(app) as web, running_prometheus(web.address, tmp_path_factory.mktemp("prometheus")) as running:
        eventually(lambda: running.number("up") == 1)
        yield running


def family_of(name: str) -> str:
    return name if name in CONTRACT else SUFFIXES.sub("", name)


def metrics_in(text: str) -> set[str]:
    return {family_of(name) for name in re.findall(r"\bopsladder_\w+", text)}


def test_promtool_finds_nothing_to_say_about_the_exposition(store: Store, settings: Settings) -> None:
    done = promtool("check", "metrics", given=text_of(store, settings, next_fires={"default": NOW}))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_promtool_finds_nothing_to_say_about_an_exposition_without_records(settings: Settings) -> None:
    done = promtool("check", "metrics", given=text_of(None, settings))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_rules_are_valid() -> None:
    done = promtool("check", "rules", str(RULES))
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_when_it_should_and_not_otherwise() -> None:
    done = promtool("test", "rules", str(RULE_TESTS))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_among_those_tried() -> None:
    defined = re.findall(r"- alert: (\w+)", RULES.read_text(encoding="utf-8"))
    assert set(re.findall(r"alertname: (\w+)", RULE_TESTS.read_text(encoding="utf-8"))) == set(defined)


def test_the_rules_ask_only_for_what_there_is() -> None:
    assert metrics_in(RULES.read_text(encoding="utf-8")) <= set(CONTRACT)


def test_prometheus_knows_the_cost_of_a_chain_to_the_cent(prometheus: Prometheus) -> None:
    by_tier = prometheus.values("sum by (tier) (opsladder_cost_usd_total)", "tier")
    assert {tier: f"{cost:.2f}" for tier, cost in by_tier.items()} == {str(t): f"{c:.2f}" for t, _, c in CHAIN}
    assert f"{prometheus.number('sum(opsladder_cost_usd_total)'):.2f}" == "2.50"


def test_prometheus_has_every_family_with_its_type_and_help(prometheus: Prometheus) -> None:
    # Prometheus names a counter as its format does: OpenMetrics without "_total", the older text with it.
    known: dict[str, Any] = {family_of(name): facts for name, facts in prometheus.ask("metadata").items()}
    types = {name: known[name][0]["type"] for name in CONTRACT}
    assert types == {name: kind for name, (kind, _) in CONTRACT.items()}
    assert all(known[name][0]["help"] for name in CONTRACT)


def test_what_another_process_records_is_seen_by_the_next_scrape(
    prometheus: Prometheus, settings: Settings, store: Store
) -> None:
    breaches = 'sum(opsladder_session_failures_total{failure="guard_bypassed"})'
    assert prometheus.number(breaches) == 0
    with open_store(settings.database_url()) as elsewhere:
        climb(elsewhere, failure=Failure.GUARD_BYPASSED)
    eventually(lambda: prometheus.number(breaches) == len(CHAIN))
    assert f"{prometheus.number('sum(opsladder_cost_usd_total)'):.2f}" == "5.00"
    alert = 'count(ALERTS{alertname="OpsladderGuardBreach", alertstate="firing"})'
    eventually(lambda: prometheus.number(alert) == len(CHAIN))


def test_prometheus_can_evaluate_every_rule(prometheus: Prometheus) -> None:
    def rules() -> list[dict[str, Any]]:
        return [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]

    eventually(lambda: all(rule["health"] != "unknown" for rule in rules()))
    assert {rule["name"]: rule.get("lastError", "") for rule in rules() if rule["health"] != "ok"} == {}
    assert prometheus.number('ALERTS{alertname="OpsladderWatchdog", alertstate="firing"}') == 1


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_prometheus_can_evaluate_what_the_dashboard_asks(prometheus: Prometheus, expression: str) -> None:
    for variable, value in (("$__rate_interval", "5m"), ("$job", ".+"), ("$instance", ".+")):
        expression = expression.replace(variable, value)
    assert "$" not in expression
    prometheus.query(expression)


def test_the_dashboard_shows_every_family_and_nothing_else() -> None:
    assert metrics_in(" ".join(EXPRESSIONS)) == set(CONTRACT)


def test_the_panels_of_the_dashboard_have_their_own_place_and_number() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    for one, other in combinations([panel["gridPos"] for panel in DASHBOARD["panels"]], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in DASHBOARD["panels"])


def test_the_dashboard_takes_whichever_data_source_it_is_given() -> None:
    variable = DASHBOARD["templating"]["list"][0]
    assert (variable["name"], variable["type"], variable["query"]) == ("datasource", "datasource", "prometheus")
    sources = [panel["datasource"] for panel in PANELS] + [t["datasource"] for p in PANELS for t in p["targets"]]
    assert {json.dumps(source) for source in sources} == {'{"type": "prometheus", "uid": "${datasource}"}'}
