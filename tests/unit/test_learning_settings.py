"""Settings of the learning loop: what they may be, and what is written of them."""

from pathlib import Path
from typing import Any

import pytest

from yomi.engine.cli.flags import asked_cluster, settings_of
from yomi.engine.cli.main import build
from yomi.engine.cli.parser import CliError
from yomi.engine.clusters.actors import ClusterOptions
from yomi.engine.evaluators import devices
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.learning.run import COMMAND, RunSettings, _adapted, _make_loop, _read_tables
from yomi.engine.learning.settings import LearnSettings, learn_settings, training_tables
from yomi.engine.options import Options
from yomi.nets.errors import NetworkError
from yomi.nets.models import default_network
from yomi.settings import OptionError, make_settings

ROOT = Path(__file__).resolve().parents[2]


def test_the_documentation_has_all_of_them() -> None:
    pytest.importorskip("torch")
    from tests.reference import settings_page

    text = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    assert text == settings_page(), "run: python -m tests.reference"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"visitss": 3}, "unknown setting 'visitss', expected one of search, visits,"),
        ({"visits": 1}, "visits: expected an integer of at least 2, found 1"),
        ({"visits": 2.5}, "visits: expected an integer of at least 2, found 2.5"),
        ({"full_share": 1.5}, "full_share: expected a number from 0.01 to 1, found 1.5"),
        ({"search": "minimax"}, "search: expected one of puct, gumbel, or FILE.py:NAME, found 'minimax'"),
        ({"keep_tree": 1}, "keep_tree: expected true or false, found 1"),
    ],
)
def test_what_cannot_be_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        make_settings(LearnSettings, values)
    assert str(caught.value).startswith(message)


def test_the_search_decides_how_many_positions_are_learned() -> None:
    assert learn_settings({}) == LearnSettings()
    assert (LearnSettings().search, LearnSettings().visits, LearnSettings().full_share) == ("puct", 100, 0.25)
    gumbel = learn_settings({"search": "gumbel", "full_share": 0.5})
    assert (gumbel.visits, gumbel.full_share) == (32, 0.5)


def test_tables_of_ones_own_are_put_over_the_settings() -> None:
    settings = make_settings(LearnSettings, {"rows": 3200, "passes": 2, "batch": 64})
    tables = training_tables(settings, {"kind": "go"}, {"training": {"batch": 32}, "loss": {"lead": 1.0}}, 1)
    assert tables["network"] == {"name": "yomi-learn", "kind": "go"}
    assert tables["training"]["batch"] == 32
    assert tables["training"]["decay"] == pytest.approx(1 - 1 / 100)
    assert tables["loss"]["lead"] == 1.0
    assert LearnSettings() == make_settings(LearnSettings, {})


@pytest.mark.parametrize(
    ("start", "game", "file"),
    [
        ("yomi-shogi-sparse", "shogi", "yomi-shogi-sparse.safetensors"),
        ("yomi-go-b6c96", "go", "yomi-go-b6c96.bin.gz"),
        ("fast", "go", "yomi-go-b6c96.bin.gz"),
    ],
)
def test_a_run_begins_with_a_network_by_its_name(tmp_path: Path, start: str, game: str, file: str) -> None:
    config = tmp_path / "network.toml"
    config.write_text(f'[network]\nkind = "go"\nstart = "{start}"\n', encoding="ascii")
    assert _read_tables(config, game)["network"]["start"] == str(default_network("go").parent / file)
    (tmp_path / start).write_bytes(b"a network")  # a file beside the configuration goes first
    assert _read_tables(config, game)["network"]["start"] == str(tmp_path / start)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("yomi-go-b6c69", "start yomi-go-b6c69: no such file; expected a network's file, or the name fast or "),
        ("pyproject.toml", "start pyproject.toml: no such file beside it"),
        pytest.param("x" * 300, "start: File name too long", marks=pytest.mark.linux),
    ],
)
def test_a_start_that_is_no_network(tmp_path: Path, start: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    config = tmp_path / "network.toml"
    config.write_text(f'[network]\nstart = "{start}"\n', encoding="ascii")
    with pytest.raises(OptionError) as caught:
        _read_tables(config, "go")
    assert str(caught.value).startswith(f"--network {config}: {message}")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--gpus-per-process 0.5", "--cores-per-process, --gpus-per-process, --insecure: expected --cluster with them"),
        ("--cluster local --processes 0", "--processes 0 with --cluster: expected at least one process"),
        ("--cluster local --cores-per-process 0", "--cores-per-process 0 --gpus-per-process 0: expected a core"),
    ],
)
def test_a_cluster_that_cannot_be(flags: str, message: str) -> None:
    words = ["learn", "go", *flags.split()]
    args = build(words).parse_args(words)
    with pytest.raises(OptionError) as caught:
        settings_of(RunSettings, args).options(getattr(args, "processes", None))
    assert str(caught.value).startswith(message)


def test_processes_are_those_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    words = ["learn", "go", "--cluster", "auto", "--processes", "30", "--gpus-per-process", "0.25", "--insecure"]
    args = build(words).parse_args(words)
    assert settings_of(RunSettings, args).options(30) == ClusterOptions("auto", 30, 1.0, 0.25, True)
    words = ["learn", "go", "--processes", "3"]
    assert asked_cluster(build(words).parse_args(words)) is None


@pytest.mark.parametrize(
    "words",
    [
        "review a.sgf", "dataset make a --out b", "dataset vary a --out b --engine c --shards 2 --nodes 9",
        "dataset play go --positions 9 --out b --teacher c --size 9",
    ],
)  # fmt: skip
def test_every_command_of_a_cluster_takes_processes(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    found = [*words.split(), "--processes", "4"]
    with pytest.raises(CliError, match="--insecure, --processes: expected --cluster with them"):
        asked_cluster(build(found).parse_args(found))
    found += ["--cluster", "local"]
    assert asked_cluster(build(found).parse_args(found)) == ClusterOptions("local", 4, 1.0, 0.0, False)


@pytest.mark.parametrize(("has_half", "precision"), [(True, "fp16"), (False, "fp32"), (None, "auto")])
def test_networks_of_a_run_on_a_gpu_are_not_compared_with_fp32(
    has_half: bool | None, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(kind: str) -> list[devices.Gpu]:
        if has_half is None:  # this machine has no GPU, but GPUs of a cluster may
            raise EvaluatorError("no GPU")
        return [devices.Gpu("card", has_half)]

    monkeypatch.setattr(devices, "find_gpus", find)
    options = Options(device="cuda", net="network.bin.gz")
    assert _adapted(GO, {}, "", print, options).precision == precision
    options.set("precision", "fp32")
    assert _adapted(GO, {}, "", print, options).precision == "fp32"


def test_keys_are_set_without_a_file(tmp_path: Path) -> None:
    sets = ["network.blocks=3", "loss.ownership=0.5"]
    assert _read_tables(None, "go", sets) == {"network": {"blocks": 3}, "loss": {"ownership": 0.5}}
    (tmp_path / "net.toml").write_text('[network]\nkind = "go"\nblocks = 6\n')
    assert _read_tables(tmp_path / "net.toml", "go", sets)["network"] == {"kind": "go", "blocks": 3}
    with pytest.raises(OptionError, match=r"--set: found table \[data\], expected"):
        _read_tables(None, "go", ["data.folders=a"])


@pytest.mark.parametrize(
    ("blocks", "grow", "pooling"),
    [(2, "", [1]), (3, "", [1]), (6, "", [1, 3]), (2, "30000:4", [1, 3]), (2, "9:3", [1]), (3, "150000:5", [1, 3])],
)
def test_the_default_network_can_have_other_blocks(blocks: int, grow: str, pooling: list[int], tmp_path: Path) -> None:
    """Its list of pooling blocks names the fourth, which a smaller network does not have, or not at first."""
    found = _network_of_a_run(tmp_path, {"blocks": blocks}, {"grow": grow} if grow else {})
    assert found["pooling_blocks"] == pooling


def test_a_start_takes_the_place_of_the_default_network(tmp_path: Path) -> None:
    tables = _read_tables(None, "go", ["network.start=fast"])
    assert _network_of_a_run(tmp_path, tables["network"], {}) == {"kind": "go", "start": tables["network"]["start"]}
    with pytest.raises(NetworkError, match=r"options \['blocks'\], expected the name of a file"):  # 3 is the user's
        _network_of_a_run(tmp_path / "other", {**tables["network"], "blocks": 3}, {})


def test_blocks_that_are_no_number_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="blocks"):
        _network_of_a_run(tmp_path, {"blocks": "many"}, {})


def _network_of_a_run(folder: Path, network: dict[str, Any], found: dict[str, str]) -> Any:
    """Begin a run in folder / "run" and return its [network]."""
    pytest.importorskip("torch", reason="training needs PyTorch (yomi-engine[train])")
    run, settings = RunSettings(out=folder / "run", processes=0), learn_settings(found)
    game = GO.learning(make_settings(GO.settings_kind(COMMAND), {}), None)
    loop = _make_loop(run, game, Options(size=5), settings, {"network": network}, [], print, None, lambda figures: None)
    try:
        return loop.store.asked["network"]
    finally:
        loop.store.close()
