"""A mistake in the rules is told before anything runs."""

import pytest
from cycles import Place

TIER = '[[tiers]]\nname = "one"\nmodel = "haiku"\nprompt = "tier1.md"\n'


def test_a_set_that_does_not_exist_is_named_with_its_line(tmp_path, standin):
    place = Place(tmp_path, standin, config=TIER + 'rule_sets = ["read-onyl"]\n')
    done = place.cycle()

    assert done.exit_code == 2
    assert "opsladder.toml:" in done.err
    assert "rule_sets" in done.err
    assert "read-only" in done.err
    assert place.chains() == []
    assert not (place.work / "argv.jsonl").exists()
    assert place.processes() == []


@pytest.mark.parametrize("rules", ["[sets.read-only]\nallow = ['']\n", "[sets.read-only\n", "[nonsense]\n"])
def test_a_rules_file_that_cannot_be_read_is_named(tmp_path, standin, rules):
    place = Place(tmp_path, standin, config=TIER)
    (tmp_path / "rules.toml").write_text(rules)
    done = place.cycle()

    assert done.exit_code == 2
    assert "rules.toml:" in done.err
    assert place.chains() == []
