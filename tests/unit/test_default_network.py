"""Networks by name: bundled ones, the fast one of a game, and files that go before names."""

import shutil
from pathlib import Path

import pytest

from yomi.engine.cli.main import main
from yomi.engine.default_network import alpha_beta_file, is_bundled, limit_for_review, network_fault, network_file
from yomi.engine.options import Options
from yomi.nets.load import game_of
from yomi.nets.models import BUNDLED, bundled, fast_network


def test_every_bundled_network_is_found_by_its_name_and_is_of_its_game() -> None:
    models = Path(BUNDLED[0].path).parent
    files = {path.name for path in models.iterdir() if path.suffix in (".xz", ".gz", ".onnx", ".safetensors", ".bin")}
    assert {each.file for each in BUNDLED} == files
    for network in BUNDLED:
        assert game_of(network.path) == network.game
        for name in (network.name, network.file):
            assert bundled(name) is network
            assert network_file(Options(net=name), network.game) == str(network.path)


def test_fast_is_the_fast_network_of_the_game_and_device() -> None:
    assert Path(str(network_file(Options(net="fast"), "go"))).name == "yomi-go-b6c96.bin.gz"
    assert Path(str(network_file(Options(net="fast", device="cpu"), "shogi"))).name == "yomi-shogi-sparse.safetensors"
    assert Path(str(network_file(Options(net="fast", device="cuda"), "shogi"))).name == "yomi-shogi-6x64.onnx"
    assert fast_network("go").is_file()


def test_a_file_goes_before_a_name_and_dot_slash_is_always_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no such file" in str(network_fault("./fast", "go"))
    assert network_fault("fast", "go") is None
    Path("fast").touch()
    assert network_file(Options(net="fast"), "go") == "fast"
    assert network_file(Options(net="./fast"), "go") == "./fast"
    assert network_fault("./fast", "go") is None


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("gtp --net yomi-go-b6c69", ("--net yomi-go-b6c69: no such file", "did you mean yomi-go-b6c96?")),
        (
            "usi --net yomi-shogi-sparce",
            ("the name fast or suisho-petite or yomi-shogi-sparse", "did you mean yomi-shogi-sparse?"),
        ),
        ("gtp --value-net fst", ("--value-net fst: no such file", "did you mean fast?")),
        ("net info yomi-go-b6c69", ("yomi-go-b6c69: no such file", "did you mean yomi-go-b6c96?")),
        ("net info fats", ("fats: no such file", "expected a network's file, or the name ")),
        (
            "dataset play go --teacher yomi-go-b6 --size 9 --positions 1 --out x",
            ("yomi-go-b6: no such file", "expected a network's file, or the name fast or "),
        ),
    ],
)
def test_an_unknown_name_is_one_line_with_close_names(
    words: str, parts: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    for part in parts:
        assert part in error


def test_a_name_stands_in_a_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "yomi.toml"
    config.write_text('net = "fest"\n')
    assert main(["gtp", "--config", str(config)]) == 2
    assert "--net fest: no such file" in capsys.readouterr().err


def test_net_list_prints_every_bundled_network(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["net", "list"]) == 0
    text = capsys.readouterr().out
    for network in BUNDLED:
        assert f"--net {network.name}" in text
        assert str(network.path) in text
        assert network.source in text
    assert "--net yomi-go-b6c96 or --net fast" in text
    assert "parameters" in text
    assert "on processors, on GPUs" in text
    alpha_beta = text.partition("--net suisho-petite")[2].partition("--net ")[0]
    assert "default       on processors" in alpha_beta


def test_other_commands_take_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["net", "info", "yomi-shogi-sparse"]) == 0
    assert "sparse network" in capsys.readouterr().out
    assert is_bundled("fast")
    assert not is_bundled("fast.bin.gz")


def test_shogi_on_a_processor_is_searched_by_alpha_beta_unless_visits_ask_for_a_tree() -> None:
    expected = str(bundled("suisho-petite").path)  # type: ignore[union-attr]
    own = Options.for_game("shogi").with_values({"device": "cpu"})
    assert alpha_beta_file(own, "shogi") == expected
    assert alpha_beta_file(own.with_values({"net": "suisho-petite", "visits": 100}), "shogi") == expected
    assert alpha_beta_file(own.with_values({"playouts": 100, "level": 3}), "shogi") == expected
    for changes in (
        *({"visits": 100}, {"device": "cuda"}, {"net": "fast"}, {"evaluator": "material"}, {"evaluator": "onnx"}),
        *({"search_engine": "tree"}, {"net": "suisho-petite", "search_engine": "tree"}),
    ):
        assert alpha_beta_file(own.with_values(changes), "shogi") is None
    assert alpha_beta_file(Options(), "go") is None


def test_a_folder_with_an_evaluation_is_a_network(tmp_path: Path) -> None:
    shutil.copy(bundled("suisho-petite").path, tmp_path / "nn.bin")  # type: ignore[union-attr]
    options = Options.for_game("shogi").with_values({"net": str(tmp_path)})  # USI: EvalDir
    assert alpha_beta_file(options, "shogi") == network_file(options, "shogi") == str(tmp_path / "nn.bin")
    assert network_fault(str(tmp_path), "shogi") is None


def test_reviews_are_searched_by_alpha_beta() -> None:
    own = {"device": "cpu", "visits": 100}
    for changes, nodes in (({}, 5000), ({"seconds": 1.0}, None), ({"playouts": 20}, 20)):
        options = Options.for_game("shogi").with_values({**own, **changes})
        limit_for_review(options, "shogi", 5000)
        assert alpha_beta_file(options, "shogi") is not None
        assert (options.visits, options.playouts) == (None, nodes)
    for changes in ({"net": "fast"}, {"evaluator": "material"}, {"device": "cuda"}):
        options = Options.for_game("shogi").with_values({**own, **changes})
        limit_for_review(options, "shogi", 5000)
        assert (options.visits, options.playouts) == (100, None)
