"""What every format of networks owes to the search on every backend."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.contract.networks import write_small_network
from tests.contract.partial_networks import write_aya_policy, write_aya_value, write_cosumi
from tests.naive.shogi_networks import NetworkShape, write_network
from yomi.bench.measure import make_job
from yomi.engine.evaluators.backends import GpuBackend
from yomi.engine.evaluators.base import UnsupportedError
from yomi.engine.evaluators.devices import CPU
from yomi.engine.evaluators.network import Format, NetworkEvaluator, open_network
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.game import BenchmarkPositions
from yomi.engine.go.networks import FORMATS as GO
from yomi.engine.go.players.setup import go_subject
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, SearchSettings
from yomi.engine.shogi.networks import FORMATS as SHOGI
from yomi.engine.shogi.players.setup import shogi_subject
from yomi.native.tree.arrays import VALUE, Batch
from yomi.nets.dlshogi.network import ShogiForm

SIZE = 9
ROWS = 6
"""More than a GPU takes at a time here."""


class Case(NamedTuple):
    formats: Sequence[type[Format]]
    write: Callable[[Path], Path]
    is_native: bool = True
    """Whether our own kernels compute it."""


CASES = {
    "katago": Case(GO, write_small_network),
    "aya policy": Case(GO, write_aya_policy),
    "aya value": Case(GO, lambda folder: write_aya_value(folder, SIZE)),
    "cosumi": Case(GO, lambda folder: write_cosumi(folder, SIZE), is_native=False),
    "stones": Case(GO, lambda folder: write_cosumi(folder, SIZE, planes=2), is_native=False),
    "dlshogi": Case(SHOGI, lambda folder: write_network(folder / "net.onnx", NetworkShape(blocks=2, channels=16))),
    "alphazero": Case(
        SHOGI,
        lambda folder: write_network(
            folder / "net.onnx", NetworkShape(blocks=1, channels=16, form=ShogiForm.ALPHAZERO)
        ),
    ),
}
BACKENDS = ("native", "onnx", "gpu")


class Network(NamedTuple):
    """A network on a backend, and by onnxruntime."""

    evaluator: NetworkEvaluator
    reference: NetworkEvaluator
    subject: BenchmarkPositions
    backend: str


@pytest.fixture(scope="module", params=[(name, backend) for name in CASES for backend in BACKENDS], ids=" ".join)
def network(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    name, backend = request.param
    case = CASES[name]
    folder = tmp_path_factory.mktemp("net")
    path = case.write(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YOMI_CACHE_DIR", str(folder / "cache"))
        file = open_network(case.formats, path, SIZE)
        reference = file.load(CPU, "onnx")
        if backend == "native" and not case.is_native:
            with pytest.raises(UnsupportedError, match="expected backend onnx"):
                file.load(CPU, "native")
            pytest.skip("our own kernels do not compute it")
        evaluator = on_gpu(case.formats, path) if backend == "gpu" else file.load(CPU, backend)
        subject = shogi_subject(evaluator.spec) if case.formats is SHOGI else go_subject(SIZE)
        yield Network(evaluator, reference, replace(subject, spec=evaluator.spec), backend)
        evaluator.close()
        reference.close()


def on_gpu(formats: Sequence[type[Format]], path: Path) -> NetworkEvaluator:
    """Return what runs on GPUs, here on the processor."""
    form = open_network(formats, path, SIZE)
    return form.load_on(GpuBackend(form, CPU, batch_size=4, precision="fp32"))


def batches_of(evaluator: NetworkEvaluator, subject: BenchmarkPositions) -> list[Batch]:
    """Return a batch of each position, in several symmetries, whose results are NaN."""
    batches = []
    for game in subject.games:
        batch = make_job(evaluator, subject, game, ROWS, SimpleQueue()).batch
        for results in (batch.logits, batch.values, batch.ownership):
            results[...] = np.nan
        batches.append(batch)
    return batches


def legal_logits(batch: Batch, row: int) -> Any:
    return batch.logits[row, batch.indices[row, : batch.move_count[row]]]


def expect_equal(found: Batch, wanted: Batch, rows: int = ROWS) -> None:
    for row in range(rows):
        assert legal_logits(found, row) == pytest.approx(legal_logits(wanted, row), abs=2e-4)
    assert found.values[:rows] == pytest.approx(wanted.values[:rows], abs=2e-3)
    assert found.ownership[:rows] == pytest.approx(wanted.ownership[:rows], abs=2e-4)


def test_what_is_said_is_what_onnxruntime_says(network: Network) -> None:
    assert "\n" not in network.evaluator.description
    pairs = (batches_of(evaluator, network.subject) for evaluator in (network.evaluator, network.reference))
    for found, wanted in zip(*pairs, strict=True):
        network.evaluator.evaluate(found, ROWS)
        network.reference.evaluate(wanted, ROWS)
        expect_equal(found, wanted)
        assert all(np.isfinite(legal_logits(found, row)).all() for row in range(ROWS))
        assert (np.abs(found.values[:, VALUE]) <= 1.0).all()
        assert (np.abs(found.ownership) <= 1.0 + 1e-6).all()


def test_one_row_says_the_same_as_many_and_others_are_let_alone(network: Network) -> None:
    for together, alone in zip(*(batches_of(network.evaluator, network.subject) for _ in range(2)), strict=True):
        network.evaluator.evaluate(together, ROWS)
        network.evaluator.evaluate(alone, 1)
        expect_equal(alone, together, 1)
        assert np.isnan(alone.values[1:]).all()
        assert np.isnan(alone.logits[1:]).all()


def test_kernels_are_called_without_python(network: Network) -> None:
    for bound, evaluated in zip(*(batches_of(network.evaluator, network.subject) for _ in range(2)), strict=True):
        calls = network.evaluator.bind(bound)
        assert (calls is not None) == (network.backend == "native")
        if calls is not None:
            calls.run(ROWS)
            network.evaluator.evaluate(evaluated, ROWS)
            expect_equal(bound, evaluated)


def test_four_threads_may_call_at_once(network: Network) -> None:
    if network.backend == "gpu":
        pytest.skip("bound to the thread that made it")
    wanted, *found = (batches_of(network.evaluator, network.subject)[-1] for _ in range(5))
    network.evaluator.evaluate(wanted, ROWS)
    threads = [threading.Thread(target=network.evaluator.evaluate, args=(batch, ROWS)) for batch in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for batch in found:
        expect_equal(batch, wanted)


def test_a_search_finds_a_move(network: Network) -> None:
    settings = SearchSettings(memory=2**22, workers=1, seed=1)
    search = Search(network.subject.spec, InlineQueue(network.evaluator), settings)
    search.set_position(network.subject.games[-1])
    report = search.run(Limits(visits=12))
    assert report.visits >= 12
    assert report.moves
