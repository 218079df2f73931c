"""Records of the comparison made by hand: ours at two tolerances, the base model, and one peer."""

from benchmarks.peers_page import OURS

PEER = "Fairlearn ExponentiatedGradient"


def record(name, seed, accuracy, gap, tolerance=None, needs_attribute=False, data="adult", balanced=0.75):
    metrics = {
        "accuracy": accuracy,
        "balanced_accuracy": balanced,
        "selection_rate": 0.2,
        "equalized_odds_sum": 1.5 * gap,
        "equalized_odds_max": gap,
        "demographic_parity": 0.1,
        "auc": 0.9,
        "log_loss": None,
    }
    config = {
        "set": data,
        "groups": 2,
        "tolerance": tolerance,
        "needs_attribute": needs_attribute,
        "deterministic": True,
    }
    return {"name": name, "config": config, "seed": seed, "versions": {}, "metrics": metrics, "seconds": 1.0}


def ours(seed, data="adult"):
    noise = 0.0001 * seed
    for tolerance, accuracy, gap in ((0.02, 0.86, 0.02), (0.05, 0.87, 0.06)):
        yield record(OURS[False], seed, accuracy + noise, gap, tolerance, data=data)
        yield record(OURS[True], seed, accuracy + noise, gap, tolerance, needs_attribute=True, data=data)
    base = record("base", seed, 0.871 + noise, 0.14, data=data)
    base["metrics"]["noise_floor"] = 0.02
    yield base


def with_peer(accuracy, gap, tolerance=0.01, data="adult", seeds=5, **peer):
    return [
        found
        for seed in range(seeds)
        for found in (
            *ours(seed, data),
            record(PEER, seed, accuracy + 0.0001 * (seed % 2), gap, tolerance, data=data, **peer),
        )
    ]
