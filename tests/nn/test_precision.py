"""The quick way gives the slow way's numbers, up to rounding."""

import copy

import pytest

torch = pytest.importorskip("torch")

from setminus.nn import precision as module  # noqa: E402
from setminus.nn.networks.image_translation import DigitGenerator  # noqa: E402
from setminus.nn.precision import adam, autocast, fast_precision, in_float32, prepare  # noqa: E402


@pytest.mark.parametrize(("native", "expected"), [(True, "bf16-mixed"), (False, "32-true")])
def test_bfloat16_where_the_cpu_has_it(monkeypatch, native, expected):
    monkeypatch.setattr(module, "_cpu_has_bfloat16", lambda: native)
    assert fast_precision() == expected


@pytest.mark.parametrize("name", ["_is_amx_tile_supported", "_is_avx512_bf16_supported"])
def test_either_kind_of_unit_will_do(monkeypatch, name):
    for other in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"):
        monkeypatch.setattr(torch.cpu, other, lambda found=other == name: found, raising=False)
    assert fast_precision("cpu") == "bf16-mixed"


def test_float32_without_units_without_cuda_and_elsewhere(monkeypatch):
    for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"):
        monkeypatch.delattr(torch.cpu, name, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert {fast_precision(device) for device in ("cpu", "cuda", "meta")} == {"32-true"}


def test_autocast():
    layer, x = torch.nn.Linear(2, 2), torch.zeros(1, 2)
    with autocast("32-true"):
        assert layer(x).dtype == torch.float32
    with autocast("bf16-mixed"):
        assert layer(x).dtype == torch.bfloat16
        assert in_float32(layer(x)).dtype == torch.float32
    with pytest.raises(ValueError, match="precision is 'fp8': expected '32-true' or 'bf16-mixed'"):
        autocast("fp8")


def test_prepared_networks_compute_the_same():
    plain = DigitGenerator(width=4)
    fast, images = prepare(copy.deepcopy(plain)), torch.randn(3, 3, 16, 16)
    assert fast.layers[3].weight.is_contiguous(memory_format=torch.channels_last)
    assert prepare(images).is_contiguous(memory_format=torch.channels_last)
    for given in (images, prepare(images)):
        torch.testing.assert_close(fast(given), plain(images), rtol=1e-4, atol=1e-5)


def test_fused_adam_takes_the_steps_of_adam():
    ours = torch.nn.Linear(5, 3)
    theirs = copy.deepcopy(ours)
    optimizers = (
        adam(ours.parameters(), 1e-2, weight_decay=0.1),
        torch.optim.Adam(theirs.parameters(), lr=1e-2, betas=(0.5, 0.999), weight_decay=0.1, foreach=False),
    )
    start = ours.weight.detach().clone()
    for _ in range(5):
        x = torch.randn(4, 5)
        for network, optimizer in zip((ours, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            network(x).square().mean().backward()
            optimizer.step()
    torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-5, atol=1e-6)
    assert (ours.weight - start).abs().min() > 1e-3
    assert not adam([torch.zeros(2, device="meta", requires_grad=True)], 1e-2).defaults["fused"]
