"""How self-play searches, against slow twins, with searches that are made up."""

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.looping import looped
from tests.naive import learning_policies as naive
from yomi.engine.learning import policies
from yomi.engine.learning.policies import SearchResult
from yomi.engine.learning.settings import SelfPlaySettings
from yomi.native.tree.report import CHILD_DTYPE
from yomi.nets.user_files import define_function

VALUE = 0.1


class MadeUpSearch:
    """Stands for a GameSearch: moves have values that depend on how often they were searched, and on nothing else."""

    score = 0.0

    def __init__(self, priors: list[float], seed: int) -> None:
        """Begin unsearched; moves are the places of the priors."""
        self.priors, self.visits = np.array(priors, np.float32), 0
        self._values = np.random.default_rng(seed).uniform(-1.0, 1.0, (len(priors), 1000))
        self.counts = np.zeros(len(priors), np.int64)
        self.proven = np.zeros(len(priors), np.int64)
        self._allowed: npt.NDArray[np.int64] | None = None
        self.factor, self.asked = 3.0, list[int]()

    @property
    def value(self) -> float:
        """The root's own until a move was searched."""
        return VALUE if self.visits == 1 else 0.0

    def search(self, playouts: int) -> None:
        self.asked.append(playouts)
        for _ in range(playouts):
            self.visits += 1
            if self.visits > 1:
                moves = range(len(self.counts)) if self._allowed is None else self._allowed.tolist()
                self.counts[min(moves, key=lambda move: (self.counts[move], move))] += 1

    def set(self, **parameters: float) -> None:
        """Take any."""

    def prepare(self, *, noise: bool = False) -> None:
        """Leave the priors."""

    def allow(self, moves: npt.NDArray[np.int64] | None) -> None:
        self._allowed = moves

    def exploration(self, playouts: float) -> float:
        return self.factor

    def mean(self, move: int, count: int) -> float:
        return float(self._values[move, count])

    def children(self) -> npt.NDArray[Any]:
        children = np.zeros(len(self.counts), CHILD_DTYPE)
        children["move"] = np.arange(len(self.counts))
        children["visits"] = children["weight"] = self.counts
        children["prior"], children["proven"] = self.priors, self.proven
        children["utility"] = [self.mean(*each) if each[1] else np.nan for each in enumerate(self.counts.tolist())]
        order = np.argsort(self.counts == 0, kind="stable")  # tried ones first
        return children[order]


def found_by(searching: Generator[None, None, SearchResult]) -> SearchResult:
    while True:
        try:
            next(searching)
        except StopIteration as end:
            found: SearchResult = end.value
            return found


def shares(count: int, seed: int) -> list[float]:
    drawn: list[float] = np.random.default_rng(seed).dirichlet(np.full(count, 0.6)).astype(np.float32).tolist()
    return drawn


@looped("moves", [1, 2, 3, 5, 16, 40])
@looped("visits", [2, 3, 17, 64, 201])
@looped("considered", [2, 7, 16])
def test_gumbel_is_sequential_halving(moves: int, visits: int, considered: int) -> None:
    search = MadeUpSearch(shares(moves, moves), visits)
    settings = SelfPlaySettings(search="gumbel", considered=considered)
    found = found_by(policies.gumbel(search, settings, np.random.default_rng(9), visits, 1.0, True))  # type: ignore[arg-type]
    priors = {move: max(float(prior), 1e-9) for move, prior in enumerate(search.priors)}
    gumbels = dict(enumerate(np.random.default_rng(9).gumbel(size=moves).tolist()))
    compared = min(considered, moves, max(2, visits // 2))
    twin = naive.sequential_halving(priors, gumbels, VALUE, visits - 1, compared, search.mean)
    assert search.counts.tolist() == list(twin.counts.values())
    assert search.visits == visits
    assert found.move == twin.chosen
    assert dict(zip(found.moves.tolist(), found.target.tolist(), strict=True)) == pytest.approx(twin.target)


def test_gumbel_without_temperature_draws_nothing() -> None:
    found = []
    for seed in (1, 2):
        search = MadeUpSearch(shares(10, 3), 4)
        rng = np.random.default_rng(seed)
        found.append(found_by(policies.gumbel(search, SelfPlaySettings(), rng, 30, 0.0, False)))  # type: ignore[arg-type]
    assert found[0].move == found[1].move
    assert found[0].target.tolist() == found[1].target.tolist()


@looped("seed", range(20))
def test_forced_visits_are_taken_away_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    search = MadeUpSearch(shares(12, seed), seed)
    search.counts = rng.integers(0, 60, 12)
    search.factor = float(rng.uniform(1.0, 20.0))
    children = search.children()
    pruned = policies._without_forced(children, search.factor, 2.0)
    twin = naive.without_forced(
        children["prior"].astype(float).tolist(),
        children["visits"].tolist(),
        children["utility"].tolist(),
        search.factor,
        2.0,
    )
    assert pruned.tolist() == twin


def test_puct_learns_what_is_left() -> None:
    search = MadeUpSearch([0.4, 0.3, 0.2, 0.1], 5)
    settings = SelfPlaySettings(noise=0.0)
    found = found_by(policies.puct(search, settings, np.random.default_rng(1), 101, 0.0, True))  # type: ignore[arg-type]
    children = search.children()
    kept = naive.without_forced(
        children["prior"].tolist(), children["visits"].tolist(), children["utility"].tolist(), search.factor, 2.0
    )
    assert (search.visits, search.asked) == (101, [1, 100])
    wanted = {move: count / sum(kept) for move, count in zip(children["move"].tolist(), kept, strict=True) if count}
    assert dict(zip(found.moves.tolist(), found.target.tolist(), strict=True)) == pytest.approx(wanted)
    assert wanted[found.move] == max(wanted.values())
    surprise = sum(share * np.log(share / search.priors[move]) for move, share in wanted.items())
    assert found.surprise == pytest.approx(surprise)


@looped("search_by", policies.POLICIES)
@looped("proven", [[0, -1, 0, 0], [-1, -1, 0, 1], [-1, -1, -1, -1], [0, 1, -1, 0]])
def test_what_is_proven_is_played_and_learned(search_by: str, proven: list[int]) -> None:
    for seed in range(20):
        search = MadeUpSearch([0.4, 0.4, 0.1, 0.1], seed)
        search.proven = np.array(proven)
        rng = np.random.default_rng(seed)
        found = found_by(policies.POLICIES[search_by](search, SelfPlaySettings(noise=0.0), rng, 60, 1.0, True))  # type: ignore[arg-type]
        best = max(proven)
        assert proven[found.move] == best
        assert {proven[move] for move in found.moves[found.target > 0.0].tolist()} == {best}


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("cautious", "expected one of puct, gumbel, or FILE.py:NAME, found 'cautious'"),
        ("no.py:cautious", "no.py: no such file, expected a Python file"),
        ("own.py:bold", "no bold found, expected one of its names: cautious"),
        ("own.py:cautious", "3 found, expected a function"),
    ],
)
def test_a_search_that_is_none_is_refused(
    search: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text("cautious = 3\n")
    with pytest.raises(ValueError, match=message):
        policies.check_policy(search)


def test_the_regularised_policy_solves_its_equation() -> None:
    text = (Path(__file__).parents[2] / "docs/how-to/learning.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```python\n(# searches\.py: .*?)```", text, re.DOTALL)
    define_function("/docs/searches.py:regularised", script)
    search = MadeUpSearch([0.4, 0.3, 0.2, 0.1], 5)
    policy = policies.find_policy("/docs/searches.py:regularised")
    settings = SelfPlaySettings(noise=0.0, forced_playouts=0.0)
    found = found_by(policy(search, settings, np.random.default_rng(1), 101, 1.0, True))  # type: ignore[arg-type]
    values = np.array([search.mean(move, search.counts[move]) for move in found.moves.tolist()])
    scale = search.factor / (4 + 100)

    def worth(shares: Any) -> float:
        return float((shares * values).sum() + scale * (search.priors[found.moves] * np.log(shares)).sum())

    rng = np.random.default_rng(2)
    for _ in range(200):
        other = found.target * np.exp(rng.normal(0.0, 0.05, 4))
        assert worth(other / other.sum()) <= worth(found.target) + 1e-9


def test_a_policy_of_a_file_has_its_classes_and_may_move() -> None:
    source = """
from __future__ import annotations
import dataclasses

@dataclasses.dataclass
class Constants:
    scale: float = 2.0

def mine(*arguments):
    return Constants().scale
"""
    define_function("/elsewhere/own.py:mine", source)  # as a node of a cluster does, without the file
    assert policies.find_policy("/elsewhere/own.py:mine")() == 2.0  # type: ignore[call-arg, comparison-overlap]
