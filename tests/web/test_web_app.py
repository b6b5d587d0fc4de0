"""What the service answers over HTTP: alive, ready, metrics; also when the store is gone. On a real server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from supervisor.settings import Settings
from supervisor.store import Store, open_store, upgrade
from supervisor.web.app import make_app
from tests.postgres import running_postgres
from tests.store.store_examples import NOON
from tests.web.served import NOW, Served, served, service, settings_in

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_in(tmp_path)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with open_store(settings.database_url()) as opened:
        yield opened


@pytest.fixture
def web(store: Store, settings: Settings) -> Iterator[Served]:
    with served(make_app(service(store, settings))) as server:
        yield server


def take_away(store: Store, settings: Settings) -> None:
    """Let the database be gone for every connection from now on."""
    store.close()
    (settings.state.dir / "opsladder.db").unlink()


def test_a_process_that_lives_is_healthy_also_without_its_store(web: Served, store: Store, settings: Settings) -> None:
    take_away(store, settings)
    answer = web.get("/healthz")
    assert (answer.status, answer.document) == (200, {"status": "ok"})


def test_a_service_is_ready_when_its_store_answers_and_its_scheduler_runs(web: Served) -> None:
    answer = web.get("/readyz")
    assert answer.status == 200
    assert answer.document == {"status": "ready", "reasons": [], "switch": {"paused": False, "since": None}}


def test_a_service_that_is_paused_is_ready_and_says_so(web: Served, store: Store) -> None:
    store.pause(by="ada", reason="secret plans", now=NOON)
    answer = web.get("/readyz")
    assert answer.status == 200
    assert answer.document["switch"] == {"paused": True, "since": "2026-03-01T12:00:00.123Z"}
    assert "secret plans" not in answer.text


def test_a_scheduler_that_does_not_run_is_a_reason_not_to_be_ready(store: Store, settings: Settings) -> None:
    app = make_app(service(store, settings, scheduler_problem=lambda: "The scheduler has not started."))
    with served(app) as web:
        answer = web.get("/readyz")
    assert (answer.status, answer.document["status"]) == (503, "not ready")
    assert answer.document["reasons"] == ["The scheduler has not started."]


def test_a_schema_that_is_not_up_to_date_is_a_reason_not_to_be_ready(
    web: Served, store: Store, settings: Settings
) -> None:
    take_away(store, settings)
    answer = web.get("/readyz")
    assert (answer.status, answer.document["switch"]) == (503, None)
    [reason] = answer.document["reasons"]
    assert reason.startswith("The records are not of the schema that this version needs")


def test_metrics_come_in_the_text_format_of_prometheus(web: Served) -> None:
    answer = web.get("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "opsladder_cycles" in {family.name for family in parse_text(answer.text)}


def test_metrics_come_as_openmetrics_for_who_asks_for_that(web: Served) -> None:
    answer = web.get("/metrics", accept=OPENMETRICS)
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert answer.text.endswith("# EOF\n")
    assert "opsladder_cycles" in {family.name for family in parse_openmetrics(answer.text)}


def test_metrics_follow_a_reload(store: Store, settings: Settings, tmp_path: Path) -> None:
    current = [settings]
    with served(make_app(service(store, settings, settings=lambda: current[0]))) as web:
        assert 'schedule="night"' not in web.get("/metrics").text
        current[0] = settings_in(tmp_path, '[[schedules]]\nname = "night"')
        assert 'opsladder_cycles_total{schedule="night",status="healthy"} 0.0' in web.get("/metrics").text


def test_the_next_firing_is_told_where_it_is_known(store: Store, settings: Settings) -> None:
    fires = {"default": NOW, "by-hand": None}
    with served(make_app(service(store, settings, next_fires=lambda: fires))) as web:
        lines = web.get("/metrics").text.splitlines()
    found = dict(line.split() for line in lines if line.startswith("opsladder_next_fire_timestamp_seconds"))
    named = 'opsladder_next_fire_timestamp_seconds{schedule="default"}'
    assert {name: float(value) for name, value in found.items()} == {named: NOW.timestamp()}


def test_without_its_store_metrics_are_refused_with_a_sentence_and_come_again_with_it(
    web: Served, store: Store, settings: Settings
) -> None:
    take_away(store, settings)
    gone = web.get("/metrics")
    assert gone.status == 503
    assert gone.text == "The records cannot be reached; the log says why.\n"
    open_store(settings.database_url()).close()
    assert web.get("/metrics").status == 200


@pytest.mark.parametrize("path", ["/metrics", "/readyz"])
def test_where_the_records_are_is_for_the_log_and_said_there_once_each_time(
    web: Served, store: Store, settings: Settings, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    for _ in range(2):
        take_away(store, settings)
        answers = [web.get(path), web.get(path)]
        assert [(a.status, str(settings.state.dir) in a.text, "opsladder.db" in a.text) for a in answers] == [
            (503, False, False)
        ] * 2
        open_store(settings.database_url()).close()
        assert web.get(path).status == 200
    logged = [record.why for record in caplog.records if record.name == "supervisor.web.app"]
    assert [f"{settings.state.dir}/opsladder.db" in why for why in logged] == [True, True]


def test_a_server_that_is_away_is_not_named_either(
    tmp_path: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    away = settings_in(tmp_path, OPSLADDER_STATE__DATABASE_URL="postgresql://ops:hunter2@127.0.0.1:9/shop")
    with served(make_app(service(store, away))) as web:
        answer = web.get("/readyz")
    assert (answer.status, answer.document["reasons"]) == (503, ["The records cannot be reached; the log says why."])
    [logged] = [record for record in caplog.records if record.name == "supervisor.web.app"]
    assert "shop at 127.0.0.1:9" in logged.why
    assert "hunter2" not in logged.why


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_a_server_that_crashes_and_comes_back_is_lived_through(tmp_path: Path) -> None:
    with running_postgres() as postgres:
        settings = settings_in(tmp_path, OPSLADDER_STATE__DATABASE_URL=postgres.new_database())
        upgrade(settings.database_url())
        with open_store(settings.database_url()) as store, served(make_app(service(store, settings))) as web:
            assert (web.get("/metrics").status, web.get("/readyz").status) == (200, 200)
            postgres.crash()
            assert (web.get("/metrics").status, web.get("/readyz").status) == (503, 503)
            assert web.get("/healthz").status == 200
            postgres.start()
            assert (web.get("/metrics").status, web.get("/readyz").status) == (200, 200)


def test_what_nobody_thought_of_is_an_answer_too(store: Store, settings: Settings) -> None:
    def broken() -> str:
        raise RuntimeError("a detail for the log only")

    with served(make_app(service(store, settings, scheduler_problem=broken))) as web:
        answer = web.get("/readyz")
        assert (answer.status, web.get("/healthz").status) == (500, 200)
    assert "a detail" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz", "/api/openapi.json", "/nowhere"])
def test_every_answer_leaves_a_browser_nothing_to_misuse(web: Served, path: str) -> None:
    headers = web.get(path).headers
    assert headers["content-security-policy"].startswith("default-src 'none';")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


def test_the_description_is_where_the_contract_says_and_brings_no_pages(web: Served) -> None:
    paths = web.get("/api/openapi.json").document["paths"]
    assert {"/metrics", "/healthz", "/readyz"} <= set(paths)
    assert {web.get(path).status for path in ("/docs", "/redoc", "/openapi.json")} == {404}
