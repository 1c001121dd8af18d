"""Rule sets of Go by name and in KataGo's JSON form.

Pure data without numba, so that a command line can check rules before kernels load. Source of fields and presets:
KataGo's `kata-set-rules` (docs/GTP_Extensions.md).
"""

import json
import re
import sys
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar, get_args

from yomi.language import tr
from yomi.settings import OptionError, did_you_mean

Ko = Literal["SIMPLE", "POSITIONAL", "SITUATIONAL"]
Scoring = Literal["AREA", "TERRITORY"]
Tax = Literal["NONE", "SEKI", "ALL"]
HandicapBonus = Literal["0", "N", "N-1"]
T = TypeVar("T")


class RulesError(OptionError):
    """A rule set is unknown, malformed or not supported. The message is one line."""


@dataclass(frozen=True)
class Rules:
    """One rule set. Suicide of a single stone is never legal."""

    # SIMPLE: no immediate recapture, and no result at the third repetition. Otherwise positional or situational
    # superko.
    ko: Ko
    scoring: Scoring
    tax: Tax  # SEKI: no territory in seki. ALL: also two points less for each living group.
    suicide: bool  # whether suicide of several stones is legal
    white_handicap_bonus: HandicapBonus  # points for White for N handicap stones
    friendly_pass_ok: bool
    komi: float = field(default=7.5, compare=False)  # The usual komi. Equality and JSON ignore it.
    states_komi: bool = field(default=False, compare=False)  # whether the text or field behind them set the komi

    @classmethod
    def parse(cls, text: str) -> "Rules":
        """Parse a preset's name, a JSON object, or KataGo's text in SGF.

        Names ignore case, spaces, `-`, `_` and a last word "rules". Missing keys in JSON are those of Tromp-Taylor,
        except that territory scoring implies tax SEKI and komi 6.5. KataGo writes
        `koPOSITIONALscoreAREAtaxNONEsui1whbNfpok1komi7.5` and the like as RU into its records.

        Raises:
            RulesError: unknown name, key or value, or rules with a button.
        """
        text = text.strip()
        if text.startswith("{"):
            try:
                found = json.loads(text)
            except (ValueError, RecursionError) as error:  # broken, a number too long, or nested too deep
                raise RulesError(f"rules are not valid JSON: {error}") from None
            return _from_fields(found)
        if match := _SGF_FORM.fullmatch(text):
            ko, scoring, tax, suicide, button, bonus, friendly, komi = match.groups()
            fields = {"ko": ko, "scoring": scoring, "tax": tax, "whiteHandicapBonus": bonus or "0"}
            flags = {"suicide": suicide == "1", "hasButton": button == "1", "friendlyPassOk": friendly == "1"}
            return _from_fields(fields | flags | ({"komi": float(komi)} if komi else {}))
        rules = PRESETS.get(_ALIASES.get(_squash(text).removesuffix("rules"), ""))
        if rules is None:
            if _squash(text) == "agabutton":
                raise RulesError("buttons are not supported (aga-button)")
            known, hint = ", ".join(PRESETS), did_you_mean(text, PRESETS)
            message = tr(
                "unknown rules '{text}': expected a JSON object or one of {known}", text=text[:100], known=known
            )
            raise RulesError(message + hint)
        return rules

    @classmethod
    def named(cls, text: str) -> "Rules | None":
        """Return the rules that a record names, as in "Chinese, Pair Go", "JP" or "日本"; None if it names none or
        several.

        Unlike `parse`, this accepts any text that names one country or rule set.
        """
        try:
            return cls.parse(text)
        except RulesError:
            text = unicodedata.normalize("NFKC", text).casefold()
        words = set(re.findall(r"[^\W\d_]+", text))
        found = {
            name
            for name, parts in _RECORD_NAMES.items()
            if any(part in words if part.isascii() else part in text for part in parts)
        }
        presets = {PRESETS[name] for name in found}
        return PRESETS[found.pop()] if len(presets) == 1 else None

    def with_rule(self, key: str, value: str) -> "Rules":
        """Return a copy with one field changed. `value` is as in JSON, unquoted and in any case. Raises RulesError."""
        key, upper = key.strip(), value.strip().upper()
        plain: object = {"TRUE": True, "FALSE": False}.get(upper, upper)
        if key == "komi":
            with suppress(ValueError):
                plain = float(upper)
        rules = replace(self, states_komi=False)
        try:
            return _with_field(rules, key, plain)
        except RulesError:
            if isinstance(plain, bool):
                raise
            # Again with the text as it was written, for the message.
            return _with_field(rules, key, value.strip())

    def to_json(self) -> str:
        """Return KataGo's JSON on one line, keys in alphabetical order, without komi."""
        fields = {
            "friendlyPassOk": self.friendly_pass_ok,
            "hasButton": False,  # `parse` refuses rules with a button
            "ko": self.ko,
            "scoring": self.scoring,
            "suicide": self.suicide,
            "tax": self.tax,
            "whiteHandicapBonus": self.white_handicap_bonus,
        }
        return json.dumps(fields, separators=(",", ":"))

    @property
    def name(self) -> str | None:
        """The first preset that equals these rules, or None."""
        return next((name for name, rules in PRESETS.items() if rules == self), None)

    @property
    def has_agreement(self) -> bool:
        """Whether the players agree on dead stones at the end. Otherwise all stones on the board count."""
        return self.scoring == "TERRITORY" or self.friendly_pass_ok

    def handicap_bonus(self, stones: int) -> int:
        """Return White's points for `stones` handicap stones. A single stone is no handicap."""
        if stones < 2 or self.white_handicap_bonus == "0":
            return 0
        return stones if self.white_handicap_bonus == "N" else stones - 1

    def __str__(self) -> str:
        """Return the preset's name, or JSON if there is none."""
        return self.name or self.to_json()


TERRITORY_KOMI = 6.5
GUESS = "guess"  # value of the option `rules`: guess them from the record


def _area(
    ko: Ko,
    *,
    bonus: HandicapBonus = "0",
    tax: Tax = "NONE",
    suicide: bool = False,
    friendly: bool = True,
    komi: float = 7.5,
) -> Rules:
    return Rules(ko, "AREA", tax, suicide, bonus, friendly, komi)


_JAPANESE = Rules("SIMPLE", "TERRITORY", "SEKI", False, "0", False, TERRITORY_KOMI)
_AGA = _area("SITUATIONAL", bonus="N-1")

# The rule sets without a button and without clean-up phases.
PRESETS: dict[str, Rules] = {
    "tromp-taylor": _area("POSITIONAL", suicide=True, friendly=False),
    "chinese": _area("SIMPLE", bonus="N"),
    "chinese-ogs": _area("POSITIONAL", bonus="N"),
    "chinese-kgs": _area("POSITIONAL", bonus="N"),
    "japanese": _JAPANESE,
    "korean": _JAPANESE,
    "aga": _AGA,
    "bga": _AGA,
    "french": _AGA,
    "new-zealand": _area("SITUATIONAL", suicide=True, komi=7.0),
    "stone-scoring": _area("SIMPLE", tax="ALL"),
    "ancient-area": _area("SIMPLE", tax="ALL"),
    "ancient-territory": Rules("SIMPLE", "TERRITORY", "ALL", False, "0", False, TERRITORY_KOMI),
    "goe": _area("POSITIONAL", suicide=True),
    "ing": _area("POSITIONAL", suicide=True),
}


_SGF_FORM = re.compile(
    r"ko([A-Z]+)score([A-Z]+)tax([A-Z]+)sui([01])(?:button([01]))?(?:whb(0|N-1|N))?(?:fpok([01]))?"
    r"(?:komi(-?\d+(?:\.\d+)?))?"
)


def _squash(name: str) -> str:
    return "".join(c for c in name.lower() if c not in " -_")


_ALIASES = {_squash(name): name for name in PRESETS} | {
    "nz": "new-zealand",
    "tt": "tromp-taylor",
    "jp": "japanese",
    "cn": "chinese",
    "kr": "korean",
}


# Preset -> words that name it in records. Words of ASCII letters must be whole.
_RECORD_NAMES: dict[str, tuple[str, ...]] = {
    "japanese": ("japanese", "japan", "jp", "jpn", "jap", "japonaise", "japanisch", "nihon", "日本", "일본"),
    "chinese": ("chinese", "china", "cn", "chn", "chinoise", "chinesisch", "中国", "中國", "중국"),
    "korean": ("korean", "korea", "kr", "kor", "baduk", "韩国", "韓国", "韓國", "한국"),
    "aga": ("aga", "american"),
    "bga": ("bga", "british"),
    "french": ("french", "ffg", "française", "francaise"),
    "new-zealand": ("nz", "zealand"),
    "ing": ("ing", "goe", "应氏", "應氏", "応氏", "응씨"),
    "tromp-taylor": ("tromp", "taylor", "tt"),
}


def _from_fields(fields: Mapping[str, object]) -> Rules:
    rules = PRESETS["tromp-taylor"]
    for key, value in fields.items():
        rules = _with_field(rules, key, value)
    if rules.scoring == "TERRITORY":
        if "tax" not in fields:
            rules = replace(rules, tax="SEKI")
        if not rules.states_komi:
            rules = replace(rules, komi=TERRITORY_KOMI)
    return rules


def _with_field(rules: Rules, key: str, value: object) -> Rules:
    match key:
        case "ko":
            if str(value).upper() == "SPIGHT":
                raise RulesError("ko rule SPIGHT is not supported: expected SIMPLE, POSITIONAL or SITUATIONAL")
            return replace(rules, ko=_one_of(key, value, get_args(Ko)))
        case "scoring" | "score":
            return replace(rules, scoring=_one_of(key, value, get_args(Scoring)))
        case "tax":
            return replace(rules, tax=_one_of(key, value, get_args(Tax)))
        case "whiteHandicapBonus":
            return replace(rules, white_handicap_bonus=_one_of(key, value, get_args(HandicapBonus)))
        case "suicide":
            return replace(rules, suicide=_boolean(key, value))
        case "friendlyPassOk":
            return replace(rules, friendly_pass_ok=_boolean(key, value))
        case "hasButton":
            if _boolean(key, value):
                raise RulesError("buttons are not supported: expected hasButton false")
            return rules
        case "komi":
            return replace(rules, komi=_number(value), states_komi=True)
    known = ("ko", "scoring", "tax", "suicide", "hasButton", "whiteHandicapBonus", "friendlyPassOk", "komi")
    raise RulesError(f"unknown rule '{key[:100]}': expected one of {', '.join(known)}{did_you_mean(key, known)}")


def _one_of(key: str, value: object, choices: tuple[T, ...]) -> T:
    for choice in choices:
        if choice == value:
            return choice
    raise RulesError(f"rule {key} is {value!r}: expected one of {', '.join(map(str, choices))}")


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise RulesError(f"komi {value!r:.40} of the rules: expected a number")
    return float(value)


def _boolean(key: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise RulesError(f"rule {key} is {value!r}: expected true or false")
