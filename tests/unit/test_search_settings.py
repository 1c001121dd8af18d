"""A row of the table of options reaches the search's settings and, under its name, the kernels."""

import contextlib
from dataclasses import fields
from typing import Any

import pytest

from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.evaluators.workers import EvaluationWorkers
from yomi.engine.go.players import setup as go_setup
from yomi.engine.options import TABLE, Options, SearchOptions, rows_for
from yomi.engine.players import setup
from yomi.engine.search.types import SearchSettings
from yomi.engine.shogi.players import setup as shogi_setup
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import PARAMETERS_DTYPE, make_tree

SEARCH_ROWS = {row.name for row in fields(SearchOptions)}


def another_value(name: str, index: int) -> Any:
    """Return a value of an option that is not its default, and of two options of numbers not the same."""
    row = TABLE[name]
    if row.kind == "flag":
        return not row.default
    if row.kind == "choice":
        return row.choices[-1]
    assert row.low is not None
    return row.check(row.low + (0.5 + index / 100 if row.kind == "real" else 2 + index))


def parameters_of(settings: SearchSettings) -> Any:
    tree = make_tree(0, 10.0, 0, 10)
    settings.write(tree, 1.0)
    return tree.parameters[0]


@pytest.mark.parametrize("game", ["go", "shogi"])
def test_every_row_reaches_settings_and_kernels(game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "usable_cores", lambda: 256)
    options = Options.for_game(game)
    names = [row.name for row in rows_for(game) if row.name in SEARCH_ROWS]
    for index, name in enumerate(names):
        options.set(name, another_value(name, index))
    queue = InlineQueue(UniformEvaluator(inputs=Inputs.NUMBERS))
    settings = (go_setup if game == "go" else shogi_setup).search_settings(options, queue)
    parameters = parameters_of(settings)
    for name in names:
        assert getattr(settings, name) == options.get(name), name
        if name in (PARAMETERS_DTYPE.names or ()):
            row, value = TABLE[name], options.get(name)
            assert parameters[name] == (row.code(str(value)) if row.kind == "choice" else value), name
    assert {"c_puct", "root_c_puct_base", "policy_temperature"} < set(PARAMETERS_DTYPE.names or ())


def test_options_of_another_game_do_not_count() -> None:
    options = Options()
    options.set("root_c_puct", 5.0)
    settings = go_setup.search_settings(options, InlineQueue(UniformEvaluator(inputs=Inputs.NUMBERS)))
    assert settings.root_c_puct is None


def test_what_is_left_open_at_the_root_is_as_elsewhere() -> None:
    settings = SearchSettings(c_puct=1.5, c_puct_base=77.0, policy_temperature=0.8, root_policy_temperature=None)
    parameters = parameters_of(settings)
    assert (parameters.root_c_puct, parameters.root_c_puct_base) == (1.5, 77.0)
    assert (parameters.root_policy_temperature, settings.root_temperature) == (0.8, 0.8)


@pytest.mark.parametrize(("cores", "workers"), [(1, 2), (3, 3), (16, 6)])
def test_a_gpu_gets_three_search_threads_for_each_evaluation_worker(
    cores: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "usable_cores", lambda: cores)
    with contextlib.closing(EvaluationWorkers([UniformEvaluator] * 2)) as queue:
        assert setup.search_threads(Options(), queue) == (workers, 2)
