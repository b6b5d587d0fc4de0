"""What is known of models: lookups, prices, and the operator's own table."""

from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.model.session import Tokens
from supervisor.settings import Settings

Load = Callable[..., Settings]


@pytest.mark.parametrize(
    ("name", "window", "input_usd"),
    [
        pytest.param("claude-haiku-5-5", 1_000_000, 0.1, id="an id"),
        pytest.param("claude-haiku-4-5", 200_000, 1.0, id="an older id"),
        pytest.param("claude-haiku-4-5-20251001", 200_000, 1.0, id="an id with a date"),
        pytest.param("claude-sonnet-4-5[1m]", 1_000_000, 3.0, id="an id with a long context"),
        pytest.param("claude-sonnet-4-5-20250929[1m]", 1_000_000, 3.0, id="with a date and a long context"),
        pytest.param("haiku", 200_000, None, id="an alias has no price"),
        pytest.param("sonnet", 200_000, None, id="another alias"),
        pytest.param("opus", 200_000, None, id="the third alias"),
        pytest.param("opus[1m]", 1_000_000, None, id="an alias with a long context"),
        pytest.param("some-other-model", None, None, id="a model nobody has measured"),
        pytest.param("claude-haiku-4-5-2025", None, None, id="four digits are no date"),
    ],
)
def test_a_model_is_found_by_id_by_alias_and_without_its_suffixes(
    load: Load, name: str, window: int | None, input_usd: float | None
) -> None:
    models = load().models
    price = models.price(name)
    assert models.window(name) == window
    assert (price.input if price else None) == input_usd


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("claude-haiku-5-5", (0.1, 0.5, 0.01, 0.125, 0.2), id="haiku 5.5"),
        pytest.param("claude-sonnet-5-5", (2, 10, 0.1, 2.5, 4), id="sonnet 5.5 reads its cache at a twentieth"),
        pytest.param("claude-opus-5-5", (4, 20, 0.2, 5, 8), id="opus 5.5 reads its cache at a twentieth"),
        pytest.param("claude-opus-5", (5, 25, 0.5, 6.25, 10), id="opus 5"),
    ],
)
def test_the_shipped_prices_are_the_measured_ones(load: Load, name: str, expected: tuple[float, ...]) -> None:
    price = load().models.price(name)
    assert price is not None
    assert (price.input, price.output, price.cache_read, price.cache_write_5m, price.cache_write_1h) == expected


def test_a_cost_adds_every_kind_of_token(load: Load) -> None:
    tokens = Tokens(input=1_000_000, output=100_000, cache_read=2_000_000, cache_write=400_000)
    assert load().models.cost("claude-opus-5-5", tokens) == pytest.approx(4 + 2 + 0.4 + 2)


def test_what_an_alias_costs_is_unknown_not_zero(load: Load) -> None:
    assert load().models.cost("opus", Tokens(input=1)) is None


def test_a_table_next_to_the_configuration_takes_the_place_of_the_shipped_one(load: Load, base: Path) -> None:
    prices = "input = 1, output = 2, cache_read = 0, cache_write_5m = 1, cache_write_1h = 1"
    (base / "models.toml").write_text(
        f'[models."in.house:7b"]\ncontext_window = 32_000\nusd_per_mtok = {{ {prices} }}\n'
    )
    models = load().models
    assert models.window("in.house:7b") == 32_000
    assert models.cost("in.house:7b", Tokens(output=1_000_000)) == 2
    assert models.window("claude-haiku-5-5") is None
