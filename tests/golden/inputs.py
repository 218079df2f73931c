"""Small seeded inputs for the commands: a table of people, a table of scores, two hospitals, two folders of pictures.

Written with numpy, pandas and Pillow alone, so that no change of the library can change them.
"""

import numpy as np
import pandas as pd


def people(n=400, seed=0):
    """Labels of two values (income) and of three (band), a text and a number to ignore, and proxies of both."""
    rng = np.random.default_rng(seed)
    sex, age, skill = rng.choice(["f", "m"], n), rng.integers(18, 70, n), rng.normal(size=n)
    merit = skill + (sex == "m") + age / 50 + rng.normal(size=n)
    job = np.where(sex == "m", "miner", "nurse")
    return pd.DataFrame(
        {
            "age": age,
            "skill": skill.round(4),
            "years": (age / 2 + rng.normal(0, 5, n)).round(1),
            "job": np.where(rng.random(n) < 0.8, job, "clerk"),
            "sex": sex,
            "income": np.where(merit > 1.4, "high", "low"),
            "band": np.array(["a", "b", "c"])[np.digitize(merit, [0.8, 2.0])],
        }
    )


def scores(n=200, seed=1):
    """Probabilities of a full and of a principal classifier, as columns."""
    full, principal = np.random.default_rng(seed).beta(2, 3, (2, n)).round(6)
    return pd.DataFrame({"p0": 1 - full, "p1": full, "q0": 1 - principal, "q1": principal}).round(6)


def patients(n, ill, moved, seed):
    """Two measurements that depend on the outcome, measured differently where `moved` is not 0."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < ill
    return pd.DataFrame(
        {
            "marker": rng.normal(3.0 * y + moved, 0.7).round(3),
            "pressure": rng.normal(120 + 10 * y - 8 * moved, 8).round(),
            "ward": np.where(rng.random(n) < 0.5, "east", "west"),
            "outcome": np.where(y, "ill", "well"),
        }
    )


def write_pictures(home, n=120, size=16, seed=3):
    """Squares of ink on a background in the folders A and B, with the color of the ink in labels.csv.

    A is mostly red on green, B mostly blue on brown.
    """
    from PIL import Image

    rng = np.random.default_rng(seed)
    inks, grounds = np.array([[200, 30, 30], [30, 30, 200]]), np.array([[40, 160, 60], [130, 90, 40]])
    rows = []
    for k in range(n):
        domain = k % 2
        ink, ground = (int(domain ^ (rng.random() > 0.8)) for _ in range(2))
        picture = np.tile(grounds[ground], (size, size, 1))
        picture[size // 4 : -size // 4, size // 4 : -size // 4] = inks[ink]
        picture = np.clip(picture + rng.normal(0, 12, picture.shape), 0, 255).astype(np.uint8)
        file = home / "AB"[domain] / f"{k:03d}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(file)
        rows.append((file.relative_to(home).as_posix(), ("red", "blue")[ink]))
    pd.DataFrame(rows, columns=["file", "ink"]).to_csv(home / "labels.csv", index=False)


def write_inputs(home):
    """All of them as files."""
    home.mkdir(parents=True, exist_ok=True)
    people().drop(columns="band").to_csv(home / "people.csv", index=False)
    people().drop(columns="income").to_parquet(home / "bands.parquet")
    scores().to_csv(home / "scores.csv", index=False)
    patients(300, 0.2, 0.0, 0).to_csv(home / "old.csv", index=False)
    new = patients(200, 0.7, 0.5, 1)
    new.assign(outcome=new["outcome"].where(new.index < 60)).to_csv(home / "new.csv", index=False)
    write_pictures(home / "pictures")
