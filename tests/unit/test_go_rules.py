"""Rule sets by name, in KataGo's JSON, and in its text for SGF."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.looping import looped
from yomi.engine.go.rules import PRESETS, Rules, RulesError

ANY_RULES = st.builds(
    Rules,
    ko=st.sampled_from(["SIMPLE", "POSITIONAL", "SITUATIONAL"]),
    scoring=st.sampled_from(["AREA", "TERRITORY"]),
    tax=st.sampled_from(["NONE", "SEKI", "ALL"]),
    suicide=st.booleans(),
    white_handicap_bonus=st.sampled_from(["0", "N", "N-1"]),
    friendly_pass_ok=st.booleans(),
)


@given(ANY_RULES)
def test_json_round_trip(rules: Rules) -> None:
    assert Rules.parse(rules.to_json()) == rules
    assert Rules.parse(str(rules)) == rules


@looped("name", PRESETS)
def test_preset_names_in_any_spelling(name: str) -> None:
    for spelling in (name, name.upper(), name.replace("-", "_"), name.replace("-", ""), f" {name.replace('-', ' ')} "):
        assert Rules.parse(spelling) == PRESETS[name]


def test_presets_as_katago_has_them() -> None:
    japanese = Rules.parse("japanese")
    assert (japanese.scoring, japanese.tax, japanese.komi) == ("TERRITORY", "SEKI", 6.5)
    assert Rules.parse("NZ").suicide
    assert Rules.parse("stone_scoring").tax == "ALL"


def test_json_may_leave_fields_out() -> None:
    assert Rules.parse("{}") == PRESETS["tromp-taylor"]
    assert Rules.parse('{"scoring":"TERRITORY"}').tax == "SEKI"
    assert Rules.parse('{"scoring":"TERRITORY","tax":"NONE"}').tax == "NONE"
    for text, komi in (
        ('{"komi":5.5}', 5.5),
        ("new-zealand", 7.0),
        ('{"scoring":"TERRITORY"}', 6.5),
        ('{"scoring":"TERRITORY","komi":0.5}', 0.5),
        ("koSIMPLEscoreTERRITORYtaxSEKIsui0", 6.5),
        ("koSIMPLEscoreAREAtaxNONEsui0", 7.5),
        ("koSIMPLEscoreTERRITORYtaxSEKIsui0komi6", 6.0),
        ("koSIMPLEscoreAREAtaxNONEsui0whbNfpok1komi-0.5", -0.5),
    ):
        assert Rules.parse(text).komi == komi


def test_katago_text_of_game_records() -> None:
    assert Rules.parse("koPOSITIONALscoreAREAtaxNONEsui1") == PRESETS["tromp-taylor"]
    assert Rules.parse("koSIMPLEscoreAREAtaxNONEsui0whbNfpok1") == PRESETS["chinese"]
    assert Rules.parse("koSITUATIONALscoreAREAtaxNONEsui0whbN-1fpok1") == PRESETS["aga"]


def test_rules_with_a_button_are_refused() -> None:
    for value in ("true", "TRUE", " True "):
        with pytest.raises(RulesError, match=r"^buttons are not supported: expected hasButton false$"):
            PRESETS["chinese"].with_rule("hasButton", value)
    with pytest.raises(RulesError, match=r"^rule hasButton is 'yes': expected true or false$"):
        PRESETS["chinese"].with_rule("hasButton", "yes")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("checkers", "unknown rules 'checkers'"),
        ("aga-button", "button"),
        ('{"hasButton":true}', "button"),
        ("koSITUATIONALscoreAREAtaxNONEsui0button1whbN-1fpok1", "button"),
        ('{"ko":"SPIGHT"}', "SPIGHT"),
        ('{"ko":"simple"}', "expected one of SIMPLE"),
        ('{"suicide":1}', "expected true or false"),
        ('{"colour":true}', "unknown rule 'colour': expected one of ko, scoring, .*friendlyPassOk, komi$"),
        ('{"Ko":"SIMPLE"}', r"did you mean ko\?$"),
        ('{"multiStoneSuicide":true}', r"did you mean suicide\?$"),
        pytest.param('{"' + "k" * 5000 + '":true}', "unknown rule 'k{100}'", id="key-of-5000-letters"),
        ('{"komi":"x"}', "expected a number"),
        ('{"ko":', "not valid JSON"),
        ('{"komi":1e999}', "expected a number"),
        pytest.param('{"komi":' + "9" * 400 + "}", "expected a number", id="number-of-400-digits"),
        pytest.param('{"komi":' + "9" * 5000 + "}", "not valid JSON", id="number-of-5000-digits"),
        pytest.param('{"ko":' + "[" * 100_000, "not valid JSON", id="nested-100000-deep"),
        ("", "unknown rules"),
    ],
)
def test_refusals_are_one_clear_line(text: str, words: str) -> None:
    with pytest.raises(RulesError, match=words) as caught:
        Rules.parse(text)
    assert "\n" not in str(caught.value)


def test_one_rule_at_a_time() -> None:
    rules = PRESETS["chinese"].with_rule("suicide", "true").with_rule("whiteHandicapBonus", "N-1")
    assert rules == dataclasses.replace(PRESETS["chinese"], suicide=True, white_handicap_bonus="N-1")
    assert json.loads(rules.to_json())["suicide"] is True
    assert PRESETS["aga"].with_rule("ko", " simple").with_rule("whiteHandicapBonus", "n") == PRESETS["chinese"]
    assert PRESETS["chinese"].with_rule("whiteHandicapBonus", "n-1").white_handicap_bonus == "N-1"
    with pytest.raises(RulesError, match="unknown rule"):
        rules.with_rule("gravity", "on")


def test_handicap_bonus() -> None:
    assert [PRESETS["chinese"].handicap_bonus(n) for n in (0, 1, 2, 9)] == [0, 0, 2, 9]
    assert [PRESETS["aga"].handicap_bonus(n) for n in (0, 1, 2, 9)] == [0, 0, 1, 8]
    assert PRESETS["japanese"].handicap_bonus(9) == 0
