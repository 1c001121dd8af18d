"""Evaluation workers that fail, hang and come back, and devices that share the batches."""

import logging
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

import pytest

from tests.fakes.evaluators import FaultyEvaluator, ScriptedEvaluator
from tests.unit.test_search import run, visits_of
from tests.unit.trees import check_tree, new_game, new_search, search_at
from tests.waiting import wait_until
from yomi.engine.evaluators.base import DeviceLostError, EvaluatorError, stop_making
from yomi.engine.evaluators.devices import CPU, Device, device_numbers, devices_of
from yomi.engine.evaluators.queue import InlineQueue, Job
from yomi.engine.evaluators.workers import EvaluationWorkers, make_device_queue
from yomi.engine.options import Options
from yomi.engine.search.types import Limits
from yomi.native.go.spec import go_spec
from yomi.native.spec import Inputs
from yomi.native.tree.buffers import make_batch

HANG = 0.5
PATIENT = 60.0  # where nothing hangs: a busy machine may stop a thread for long
NEVER = range(0)
ALWAYS = range(1, 10**9)


class Devices:
    """Makes evaluators by device and remembers them.

    Args:
        faults: of each device.
        once: only a device's first evaluator has them.
        seconds: how long it takes to make an evaluator again.
    """

    def __init__(self, *faults: tuple[str, range], once: bool = False, seconds: float = 0.0) -> None:
        self.faults = list(faults)
        self.seconds = seconds
        self.once = once
        self.made: list[list[FaultyEvaluator]] = [[] for _ in faults]
        self.released = threading.Event()

    def factories(self) -> list[Callable[[], FaultyEvaluator]]:
        return [lambda i=i: self._make(i) for i in range(len(self.faults))]  # type: ignore[misc]

    def _make(self, index: int) -> FaultyEvaluator:
        fault, calls = self.faults[index]
        if self.made[index]:
            self.released.wait(self.seconds)
            fault = "none" if self.once else fault
        evaluator = FaultyEvaluator(ScriptedEvaluator(4, seconds=0.001), fault, calls, seconds=600.0)
        evaluator.description = f"net on cuda:{index}"
        self.made[index].append(evaluator)
        return evaluator

    def release(self) -> None:
        """Let those that hang, and those that are being made, go on."""
        self.released.set()
        for evaluators in self.made:
            for evaluator in evaluators:
                evaluator.released.set()


def expected_visits() -> dict[int, int]:
    search = search_at(ScriptedEvaluator(4))
    run(search, Limits(playouts=300))
    return visits_of(search)


@pytest.mark.parametrize("fault", ["raise", "nan", "hang"])
def test_a_failure_is_repaired_and_nothing_is_lost(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    devices = Devices((fault, range(5, 6)), once=True)
    queue = EvaluationWorkers(devices.factories(), hang=HANG if fault == "hang" else PATIENT)
    search = search_at(queue)
    with caplog.at_level(logging.WARNING, "yomi.evaluators"):
        assert run(search, Limits(playouts=300)).visits == 300
    assert visits_of(search) == expected_visits()
    check_tree(search)
    assert len(devices.made[0]) == 2
    first, second = devices.made[0]
    assert first.inner.made_in == second.inner.made_in or fault == "hang"  # type: ignore[attr-defined]
    assert "net on cuda:0" in caplog.text
    assert "set up again" in caplog.text
    devices.release()
    queue.close()


@pytest.mark.parametrize("fault", ["raise", "hang"])
def test_a_device_that_keeps_failing_is_dropped(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    devices = Devices((fault, ALWAYS), ("none", NEVER))
    queue = EvaluationWorkers(devices.factories(), hang=HANG if fault == "hang" else PATIENT)
    search = search_at(queue, workers=2, batches_in_flight=2)
    with caplog.at_level(logging.WARNING, "yomi.evaluators"):
        search.start(Limits(seconds=60.0))
        for _ in range(3000):
            if queue.worker_count == 1 or search.wait(0.02):
                break
        search.interrupt()
        search.stop()
        assert run(search, Limits(playouts=500)).playouts == 500
    assert queue.worker_count == 1
    assert "net on cuda:0 is given up" in caplog.text
    assert "the search continues with net on cuda:1" in caplog.text
    check_tree(search)
    devices.release()
    queue.close()


def test_without_any_device_left_everything_ends_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    devices = Devices(("raise", ALWAYS), ("raise", ALWAYS))
    queue = EvaluationWorkers(devices.factories(), hang=PATIENT)
    search = search_at(queue, workers=2, batches_in_flight=2)
    messages = set()
    for _ in range(12):
        with pytest.raises((EvaluatorError, RuntimeError)) as caught:
            search.run(Limits(playouts=100))
        messages.add(str(caught.value))
    assert queue.worker_count == 0
    assert any("no other device is left: the device is gone" in message for message in messages)
    with pytest.raises(EvaluatorError, match="no other device is left"):
        queue.call(lambda evaluator: evaluator.description)
    queue.close()


def test_a_batch_that_fails_everywhere_is_itself_at_fault() -> None:
    devices = Devices(("none", NEVER), ("none", NEVER), seconds=0.1)
    queue = EvaluationWorkers(devices.factories(), hang=PATIENT)
    done: SimpleQueue[Job] = SimpleQueue()
    poison = Job(make_batch(go_spec(5), 4, Inputs.NOTHING), 4, done)
    poison.batch = poison.batch._replace(logits=None)
    good = Job(make_batch(go_spec(5), 4, Inputs.NOTHING), 4, done)
    for _ in range(3):
        queue.submit(poison)
        assert done.get(timeout=300).error is not None
        poison.failed_at = None
        for _ in range(40):
            queue.submit(good)
            assert done.get(timeout=300).error is None
            time.sleep(0.005)
    assert queue.worker_count == 2
    queue.close()


def test_a_device_that_cannot_be_set_up_anew_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    devices = Devices(("hang", range(3, 4)), seconds=600.0)
    queue = EvaluationWorkers(devices.factories(), hang=0.05)
    search = search_at(queue)
    with pytest.raises(EvaluatorError, match=r"no other device is left: it could not be set up again within 1\.2 s"):
        run(search, Limits(playouts=100))
    assert queue.worker_count == 0
    devices.release()
    queue.close()


def test_a_device_that_hangs_while_it_is_closed_is_given_up() -> None:
    released = threading.Event()

    class Stuck(ScriptedEvaluator):
        """Fails at once, and cannot be closed."""

        def close(self) -> None:
            released.wait(600)
            super().close()

    queue = EvaluationWorkers([lambda: Stuck(4, fail_at=1)], hang=0.05)
    search = search_at(queue)
    with pytest.raises(EvaluatorError, match=r"no other device is left: it could not be set up again within 1\.2 s"):
        run(search, Limits(playouts=100))
    assert queue.worker_count == 0
    released.set()
    queue.close()


def test_a_device_that_is_set_up_just_when_it_is_given_up_stays_so() -> None:
    """While the first of two is given up, the second, whose time is up as well, is ready after all: one of twenty."""
    logger = logging.getLogger("yomi.evaluators")

    def once() -> bool:
        made: list[list[ScriptedEvaluator]] = [[], []]
        late, never = threading.Event(), threading.Event()
        seen: list[bool] = []
        errors: list[object] = []  # the answer, once this thread has taken it

        def make(seat: int) -> ScriptedEvaluator:
            if made[seat]:
                (never, late)[seat].wait(600)
            evaluator = ScriptedEvaluator()
            evaluator.description = f"net {seat}"
            made[seat].append(evaluator)
            return evaluator

        def fail(_: object) -> None:
            raise OSError("lost")

        def hold_the_first(record: logging.LogRecord) -> bool:
            if record.getMessage().startswith("net 0 is given up"):
                late.set()
                wait_until(
                    lambda: errors or not answer.empty() or (len(made[1]) == 2 and made[1][1].closed_in is not None)
                )
                seen.append(answer.empty() and not errors)
            return True

        queue = EvaluationWorkers([lambda: make(0), lambda: make(1)], hang=0.05)
        with pytest.raises(OSError, match="lost"):
            queue.call(fail)  # at both, which are now set up again
        answer = ask(queue, lambda _: None)
        logger.addFilter(hold_the_first)
        try:
            errors.append(answer.get(timeout=300))
        finally:
            logger.removeFilter(hold_the_first)
        if seen == [True]:
            assert "net 1 failed and no other device is left" in str(errors[0])
            assert queue.worker_count == 0
        never.set()
        late.set()
        queue.close()
        return seen == [True]

    assert any(once() for _ in range(20))


def test_a_batch_is_not_kept_for_a_device_that_is_being_set_up() -> None:
    devices = Devices(("hang", range(2, 3)), ("nan", range(3, 10**9)), seconds=0.3)
    queue = EvaluationWorkers(devices.factories(), hang=0.1)
    search = search_at(queue, workers=2)
    with pytest.raises(EvaluatorError):
        run(search, Limits(playouts=10**6))
    devices.release()
    queue.close()


def test_a_slow_thread_that_comes_back_changes_nothing() -> None:
    devices = Devices(("hang", range(1, 2)), once=True)
    queue = EvaluationWorkers(devices.factories(), hang=HANG)
    done: SimpleQueue[Job] = SimpleQueue()
    given = make_batch(go_spec(5), 4, Inputs.NOTHING)
    given.keys[:] = [1, 2, 3, 4]
    queue.submit(Job(given, 4, done))
    job = done.get(timeout=300)
    assert job.error is None
    assert job.batch is not given
    result = job.batch.logits.copy()
    devices.release()
    queue.close()
    assert done.empty()
    assert (job.batch.logits == result).all()


def test_calls_run_in_the_evaluators_thread_and_again_after_a_failure() -> None:
    devices = Devices(("none", NEVER))
    queue = EvaluationWorkers(devices.factories())
    failures = [True, False]

    def where(evaluator: Any) -> bool:
        if failures.pop(0):
            raise OSError("lost")
        return threading.get_ident() == evaluator.inner.made_in

    assert queue.call(where)
    with pytest.raises(ZeroDivisionError):
        queue.call(lambda _: 1 // 0)
    queue.close()
    assert InlineQueue(ScriptedEvaluator()).call(lambda evaluator: evaluator.description) == "scripted"


def ask(queue: EvaluationWorkers, function: Callable[[Any], object]) -> SimpleQueue[Exception | None]:
    """Have a worker call a function, in a thread; return where its error appears, None if there is none."""
    answers: SimpleQueue[Exception | None] = SimpleQueue()

    def call() -> None:
        try:
            queue.call(function)
        except Exception as error:
            answers.put(error)
        else:
            answers.put(None)

    threading.Thread(target=call, daemon=True).start()
    return answers


@pytest.mark.parametrize("fails", [True, False])
def test_who_waits_when_the_workers_are_closed_gets_an_answer(fails: bool) -> None:
    queue = EvaluationWorkers([ScriptedEvaluator], hang=PATIENT if fails else 0.5)
    begun, goes_on = threading.Event(), threading.Event()

    def work(evaluator: Any) -> None:
        begun.set()
        goes_on.wait(60)
        raise OSError("lost")

    answers = [ask(queue, work)]
    assert begun.wait(30)
    answers += [ask(queue, lambda evaluator: None) for _ in range(2)]
    wait_until(lambda: queue._tasks.qsize() == 2)
    if fails:
        threading.Thread(target=lambda: queue._closing.wait(60) and goes_on.set()).start()
    queue.close()
    first, *others = [answer.get(timeout=300) for answer in answers]
    assert isinstance(first, OSError if fails else EvaluatorError)
    assert all("closed" in str(each) for each in others)
    goes_on.set()


def test_closing_waits_for_all_that_was_submitted() -> None:
    queue, goes_on = EvaluationWorkers([ScriptedEvaluator], hang=PATIENT), threading.Event()
    answers = [ask(queue, lambda evaluator: goes_on.wait(300)) for _ in range(4)]
    wait_until(lambda: queue._tasks.qsize() == 3)
    threading.Thread(target=lambda: queue._closing.wait(300) and goes_on.set()).start()
    queue.close()
    assert [answer.get(timeout=300) for answer in answers] == [None] * 4


@pytest.mark.parametrize("comes", ["interrupt", "failure"])
def test_what_ends_the_start_ends_every_worker(comes: str) -> None:
    """One makes its evaluator for as long as it is let, as TensorRT builds an engine."""
    begun, threads, stopped = threading.Barrier(2), list[threading.Thread](), list[bool]()

    def build() -> ScriptedEvaluator:
        threads.append(threading.current_thread())
        begun.wait(60)
        stopped.append(stop_making.get().wait(300))
        time.sleep(0.2)  # longer than a worker that hangs is waited for
        raise EvaluatorError("stopped")

    def other() -> ScriptedEvaluator:
        threads.append(threading.current_thread())
        begun.wait(60)
        if comes == "failure":
            raise OSError("no device")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return ScriptedEvaluator()

    with pytest.raises(KeyboardInterrupt if comes == "interrupt" else OSError):
        EvaluationWorkers([build, other], hang=0.05)
    assert stopped == [True]
    assert len(threads) == 2
    assert not any(thread.is_alive() for thread in threads)
    assert not stop_making.get().is_set()


def test_workers_that_nobody_closed_end_before_the_interpreter() -> None:
    program = """
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.evaluators.workers import EvaluationWorkers
class Evaluator(UniformEvaluator):
    def close(self):
        print("closed", flush=True)
EvaluationWorkers([Evaluator])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("closed\n", "")


def test_a_lost_device_is_not_set_up_anew_even_if_it_cannot_be_closed(caplog: pytest.LogCaptureFixture) -> None:
    released = threading.Event()

    class Lost(ScriptedEvaluator):
        """Fails for good, and hangs while it is closed."""

        def close(self) -> None:
            super().close()
            released.wait(60)

    lost = Lost(4, fail_at=2)
    lost.error, lost.description = DeviceLostError("CUDA error 700"), "net on cuda:0"
    made = [lost]
    queue = EvaluationWorkers([made.pop, lambda: ScriptedEvaluator(4)], hang=0.5)
    search = search_at(queue, workers=2)
    while queue.worker_count == 2:
        run(search, Limits(playouts=50))
    assert "net on cuda:0 is given up (CUDA error 700): the search continues with scripted" in caplog.text
    search.clear()
    search.set_position(new_game())
    assert run(search, Limits(playouts=300)).visits == 300
    released.set()
    queue.close()
    assert lost.closed_in is not None


def test_batches_are_shared_by_load() -> None:
    seconds = [0.001, 0.1]
    made: dict[int, ScriptedEvaluator] = {}

    def make(index: int) -> ScriptedEvaluator:
        made[index] = ScriptedEvaluator(4, seconds=seconds[index])
        return made[index]

    queue = EvaluationWorkers([lambda: make(0), lambda: make(1)])
    search = search_at(queue, workers=2, batches_in_flight=3)
    run(search, Limits(playouts=1500))
    queue.close()
    assert made[1].calls > 0
    assert made[0].calls > 1.5 * made[1].calls


def test_workers_that_come_and_go_give_the_results_of_one() -> None:
    """One evaluator fails at random calls, again and again; whatever happens, equal positions get equal evaluations.

    Two that fail would now and then fail with the same batch, which is then taken to be itself at fault.
    """
    rng = random.Random(4)

    def make() -> FaultyEvaluator:
        call = rng.randrange(2, 40)
        fault = rng.choice([*["raise", "nan"] * 4, "hang"])
        return FaultyEvaluator(ScriptedEvaluator(4), fault, range(call, call + 1), seconds=3.0)

    queue = EvaluationWorkers([make, lambda: ScriptedEvaluator(4), lambda: ScriptedEvaluator(4)], hang=1.0)
    search, plain = new_search(queue), new_search(ScriptedEvaluator(4))
    for line in ("", "E5", "E5 C4", "E5 C4 G6"):
        for each in (search, plain):
            each.clear()
            each.set_position(new_game(9, line))
            assert run(each, Limits(playouts=400)).visits == 400
        assert visits_of(search) == visits_of(plain)
    assert queue.worker_count == 3
    queue.close()


def test_a_search_that_hangs_says_so_and_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = FaultyEvaluator(ScriptedEvaluator(4), "hang", range(5, 6), seconds=600.0)
    search = search_at(evaluator)
    search.start(Limits())
    wait_until(lambda: evaluator.calls >= 5)
    with monkeypatch.context() as patch:
        patch.setattr("yomi.engine.search.base.SEARCH_HANG", 0.1)
        for _ in range(2):
            with pytest.raises(EvaluatorError, match=r"scripted has not answered for 0\.1 s"):
                search.stop()
        with pytest.raises(EvaluatorError, match="has not answered"):
            search.configure(replace(search.settings, score_utility=0.0))
    assert search.root_visits > 0
    assert search.settings.score_utility > 0.0
    evaluator.released.set()
    search.wait(60)
    search.stop()
    assert run(search, Limits(visits=200)).visits == 200
    check_tree(search)


@pytest.mark.parametrize(("text", "numbers"), [(None, [0]), ("0", [0]), ("1, 0,12", [1, 0, 12])])
def test_devices_are_numbers(text: str | None, numbers: list[int]) -> None:
    assert device_numbers(text) == numbers


@pytest.mark.parametrize(
    ("text", "message"),
    [("0;1", "expected numbers"), ("-1", "expected numbers"), ("", "expected"), ("1,1", "twice"), ("²", "expected")],
)
def test_other_devices_are_refused(text: str, message: str) -> None:
    with pytest.raises(EvaluatorError, match=message):
        device_numbers(text)


def test_every_device_gets_its_workers() -> None:
    asked: list[str] = []

    def make(device: Device) -> ScriptedEvaluator:
        asked.append(str(device))
        return ScriptedEvaluator()

    queue = make_device_queue(make, [Device("cuda", 0), Device("cuda", 3)])
    assert sorted(asked) == ["cuda:0", "cuda:0", "cuda:3", "cuda:3"]
    queue.close()
    asked.clear()
    make_device_queue(make, [Device("tensorrt")], 1).close()
    make_device_queue(make, [Device("webgpu")]).close()
    assert asked == ["tensorrt:0", "webgpu:0"]
    assert isinstance(make_device_queue(make, [CPU]), InlineQueue)
    with pytest.raises(EvaluatorError, match="devices 0,1 name GPUs"):
        devices_of(Options(device="cpu", devices="0,1"))
