"""Records of style transfer made by hand: of digits, with images, and of faces, without."""

import base64
import io

from PIL import Image

LABELS = {
    "vanilla": "Vanilla",
    "orthogonal_trm": "w_x \\ w_1 (TRM, last layer)",
    "importance_oracle": "IS (Oracle)",
    "orthogonal_oracle": "w_x \\ w_1 (Oracle)",
}


def png(color, size=(4, 2)):
    """A picture of one color, as a record has it."""
    buffer = io.BytesIO()
    Image.new("RGB", size, color).save(buffer, format="PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def made_transfer(method, seed=0, z1=0.9, z2=0.5, *, name="table1", steps=20, label=None, **metrics):
    """One record; `metrics` are added to what all have."""
    at = [steps // 2, steps]
    return {
        "name": name,
        "job": "style_transfer",
        "config": {
            "method": method,
            "scale": "quick",
            "pixels": 28,
            "width": 32,
            "translation": {"steps": steps, "batch_size": 32, "rate": 1e-3},
        },
        "seed": seed,
        "versions": {"python": "3"},
        "command": f"setminus reproduce {name}",
        "claim": "one <b>claim</b>",
        "seconds": 60.0,
        "metrics": {
            "row": {"label": label or LABELS[method], "paper": {"z1": 0.902, "z2": 0.143}},
            "z1": z1,
            "z2": z2,
            "judges": {"z1": 0.999, "z2": 1.0},
            "curves": {"step": at, "z1": [0.1, z1], "z2": [0.1, z2]},
            "losses": {"step": at, "generators": [9.0, 3.0]},
            **metrics,
        },
    }


def made_digits(method, seed=0, z1=0.9, z2=0.5, **more):
    """A record of table 1: the colors are measured, too, and there are images."""
    samples = {"a": png((seed, 0, 0)), "b": png((0, seed, 0)), "a_to_b": png("blue"), "b_to_a": png("red")}
    measured = {"z1_measured": z1 - 0.01, "z2_measured": z2, "agreement": 0.98}
    return made_transfer(method, seed, z1, z2, **{"samples": samples, **measured, **more})


def made_faces(method, z1=0.8, z2=0.7, *, name="table2", fid=12.5, **more):
    """A record of table 2 or 6: a FID and the sizes of the groups, and no images."""
    features = {"fid": fid, "fid_features": "a classifier of <four> groups"}
    groups = {"00": 3200, "01": 88, "10": 2500, "11": 900}
    record = made_transfer(method, 0, z1, z2, name=name, **{**features, "groups": groups, **more})
    record["metrics"]["row"]["paper"]["fid"] = 38.5
    record["config"] |= {"pixels": 64, "width": 24, "plain_share": 0.0, "clamp": 9.0}
    return record
