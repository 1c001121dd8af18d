"""Muon: orthogonal steps for matrices, Adam's for the rest, and a state that a checkpoint keeps."""

import copy
import dataclasses

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch (extra train)")

from yomi.nets.training.config import TrainingConfig  # noqa: E402
from yomi.nets.training.optimizers import Muon, make_optimizer, orthogonal, restore_optimizer  # noqa: E402


@pytest.mark.parametrize("shape", [(8, 8), (16, 40), (40, 16)])
def test_orthogonal_matrices_have_singular_values_near_one(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    found = orthogonal(matrix)
    values = torch.linalg.svdvals(found)
    assert values.min() > 0.3
    assert values.max() < 1.3
    # The same directions: the product with the matrix is nearly symmetric and positive.
    product = matrix.T @ found if shape[0] >= shape[1] else matrix @ found.T
    assert torch.allclose(product, product.T, atol=0.15 * float(product.abs().max()))
    assert torch.linalg.eigvalsh((product + product.T) / 2).min() > 0.0


def small_network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(4, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 1, 1))


def learn(network: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: int, first: int = 0) -> float:
    loss = torch.zeros(())
    for step in range(first, first + steps):
        x = torch.randn((8, 4, 5, 5), generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        loss = ((network(x) - x.sum(1, keepdim=True).relu()) ** 2).mean()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


def test_narrow_weights_are_adams() -> None:
    network = small_network()
    twin = copy.deepcopy(network)
    muon = make_optimizer(network, TrainingConfig(steps=1, optimizer="muon", learning_rate=1e-3, weight_decay=0.0))
    adam = torch.optim.Adam(twin.parameters(), lr=1e-3)
    learn(network, muon, 1)
    learn(twin, adam, 1)
    assert isinstance(muon, Muon)
    for (name, own), other in zip(network.named_parameters(), twin.parameters(), strict=True):
        # 0.weight is 16 x 36; everything else is a vector or has one row.
        assert torch.allclose(own, other, atol=1e-6) == (name != "0.weight"), name


def test_it_learns_and_goes_on_exactly_from_its_state() -> None:
    network = small_network()
    muon = Muon(network.parameters(), lr=1e-2)
    before = learn(network, muon, 1)
    learn(network, muon, 30, first=1)
    network_kept, state = copy.deepcopy(network.state_dict()), copy.deepcopy(muon.state_dict())
    after = learn(network, muon, 30, first=31)
    assert after < 0.5 * before
    network.load_state_dict(network_kept)
    again = Muon(network.parameters(), lr=1e-2)
    again.load_state_dict(state)
    assert learn(network, again, 30, first=31) == after


@pytest.mark.parametrize("name", ["adamw", "adam", "sgd", "muon"])
def test_a_state_brings_no_settings_back(name: str) -> None:
    network = small_network()
    config = TrainingConfig(steps=1, optimizer=name, momentum=0.0, weight_decay=0.1)
    optimizer = make_optimizer(network, config)
    learn(network, optimizer, 2)
    state = copy.deepcopy(optimizer.state_dict())
    changed = dataclasses.replace(config, momentum=0.8, weight_decay=0.01)
    again = make_optimizer(network, changed)
    restore_optimizer(again, state)
    for group, plain in zip(again.param_groups, make_optimizer(network, changed).param_groups, strict=True):
        assert {**group, "params": None} == {**plain, "params": None}
    assert [group["weight_decay"] for group in again.param_groups] == [0.01, 0.0]
    if name in ("sgd", "muon"):
        assert [group["momentum"] for group in again.param_groups] == [0.8, 0.8]
    kept = again.state_dict()["state"]
    assert {index: set(each) for index, each in kept.items()} == {i: set(each) for i, each in state["state"].items()}
    learn(network, again, 1)
