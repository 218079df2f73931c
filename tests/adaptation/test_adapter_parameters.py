"""Every parameter of the adapter is refused by its own name where it is of a wrong kind or out of range."""

import math

import numpy as np
import pytest

from setminus import OrthogonalAdapter
from setminus.adaptation.adapter_parameters import check_parameters

DEFAULTS = OrthogonalAdapter().get_params()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("method", "cdan", "'cdan': expected one of auto, vada_orthogonal, vada, vada_iw, dann, source_only."),
        ("method", ["vada"], "['vada']: expected one of"),
        ("label_shift", "rlls", "'rlls': expected one of em, bbse, pseudo."),
        ("predict_prior", "source", "'source': expected one of auto, equal, target."),
        ("discriminator", "w", "'w': expected one of orthogonal, full."),
        ("steps", 0, "0: expected a whole number from 1 on."),
        ("steps", 100.0, "100.0: expected a whole number"),
        ("hidden_size", "a", "'a': expected a whole number"),
        ("batch_size", True, "True: expected a whole number"),
        ("refine_steps", -1, "-1: expected a whole number from 0 on."),
        ("learning_rate", 0.0, "0.0: expected a number above 0."),
        ("radius", math.inf, "inf: expected a number above 0."),
        ("domain_weight", -1.0, "-1.0: expected a weight of 0 or more."),
        ("target_entropy", "much", "'much': expected a weight"),
        ("shrinkage", "half", "'half': expected a share in [0, 1]."),
        ("shrinkage", 1.5, "1.5: expected a share in [0, 1]."),
        ("shrinkage", math.nan, "nan: expected a share"),
        ("held_out", None, "None: expected a share between 0 and 1."),
        ("held_out", 1.0, "1.0: expected a share between 0 and 1."),
        ("early_stopping", 1, "1: expected True or False."),
        ("device", "gpu", "'gpu': expected one of cpu, cuda, mps, auto."),
    ],
)
def test_what_is_refused(name, value, expected):
    with pytest.raises(ValueError) as refused:
        check_parameters({**DEFAULTS, name: value})
    assert str(refused.value).startswith(f"{name} is {expected}")


def test_defaults_and_numbers_of_numpy_are_taken():
    check_parameters(DEFAULTS)
    check_parameters({**DEFAULTS, "steps": np.int64(5), "shrinkage": np.float32(0.5), "domain_weight": 0})


@pytest.mark.parametrize(
    ("method", "why"), [("vada_iw", "already predicts for the target"), ("vada", "has no target estimate")]
)
def test_a_mix_that_is_not_estimated_cannot_be_answered_for(method, why):
    with pytest.raises(ValueError, match=f"predict_prior is 'target', method is '{method}': this method {why}"):
        check_parameters({**DEFAULTS, "method": method, "predict_prior": "target"})


@pytest.mark.parametrize("method", ["source_only", "vada", "dann", "vada_orthogonal"])
def test_a_known_mix_can_be_answered_for(method):
    check_parameters({**DEFAULTS, "method": method, "predict_prior": "target", "target_prior": [0.2, 0.8]})
    with pytest.raises(ValueError, match="target_prior sums to"):
        check_parameters({**DEFAULTS, "method": method, "target_prior": [0.2, 0.9]})


def test_no_parameter_is_forgotten():
    for name in DEFAULTS.keys() - {"random_state", "target_prior"}:
        with pytest.raises(ValueError, match=f"^{name} is "):
            check_parameters({**DEFAULTS, name: object()})
