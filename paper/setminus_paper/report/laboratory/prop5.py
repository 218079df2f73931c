"""Proposition 5 and theorem 2: one probability in two spaces, and the variable that conditional CDFs construct."""

from __future__ import annotations

from statistics import mean
from typing import Any

from setminus.report.charts.chart import Bars, Chart, Points, Rule, Surface

__all__ = ["charts", "summary"]

Record = dict[str, Any]

_VARIABLES = {"rest": "rest", "exact_cdf": "exact CDF", "estimated_cdf": "estimated CDF"}


def charts(records: list[Record]) -> list[Chart]:
    """The same classifier in latent and in seen space, then dependence and posterior of the constructed variable."""
    drawn: list[Chart] = []
    if invariance := _part(records, "invariance"):
        drawn += _two_spaces(invariance[0]["metrics"]["picture"])
    for mismatch in (False, True):
        if some := _existence(records, mismatch):
            drawn.append(_dependence(some, mismatch))
    if existing := _existence(records, mismatch=False):
        drawn.append(_posterior(existing[0]["metrics"]["posterior"]))
    return drawn


def summary(records: list[Record]) -> list[tuple[str, str, str]]:
    """Errors and dependences, beside their exact values and controls."""
    rows = []
    if maps := [one for record in _part(records, "invariance") for one in record["metrics"]["random"]]:
        for key, words, expected in (
            ("from_exact", "largest error behind random diffeomorphisms", "0"),
            ("between_maps", "largest difference between two diffeomorphisms of the same latents", "0"),
            ("from_exact_if_dependent", "control: the error where z1 and z2 depend on each other given y", "above 0"),
        ):
            rows.append((words, expected, _number([one[key] for one in maps])))
    for mismatch in (False, True):
        found = [record["metrics"] for record in _existence(records, mismatch)]
        for label in (0, 1) if found else ():
            for name, words in _VARIABLES.items():
                chance = mean(one["dependence_by_chance"][label] for one in found)
                # the function of class 1 fits class 1 in any case, class 0 only where the classes' functions match
                dependent = name == "rest" or (mismatch and label == 0)
                rows.append(
                    (
                        f"dependence on z1 in class {label}, {words}{_where(mismatch)}",
                        f"{'above' if dependent else 'within chance,'} {chance:.3f}",
                        f"{mean(one['dependence'][name][label] for one in found):.3f}",
                    )
                )
    if posteriors := [record["metrics"]["posterior"] for record in _existence(records, mismatch=False)]:
        rows.append(
            (
                "largest distance of full minus principal from p(y | constructed variable)",
                "0",
                f"{max(one['from_exact'] for one in posteriors):.1e}",
            )
        )
        rows.append(
            (
                "control: its mean distance from p(y | rest), which dropping z1 gives",
                "above 0",
                f"{mean(one['mean_from_rest'] for one in posteriors):.3f}",
            )
        )
    return rows


def _part(records: list[Record], part: str) -> list[Record]:
    return [record for record in records if record["config"]["part"] == part]


def _existence(records: list[Record], mismatch: bool) -> list[Record]:
    return [record for record in _part(records, "existence") if (record["config"]["mismatch"] != 0) == mismatch]


def _two_spaces(picture: dict[str, Any]) -> list[Chart]:
    latent, seen = (
        Surface(picture[space]["x"], picture[space]["y"], picture[space]["values"], "P(class 1), full minus principal")
        for space in ("latent", "seen")
    )
    points = [Points(x, y, f"class {label}") for label, (x, y) in enumerate(picture["points"])]
    return [
        Chart(
            "In the space of the latents",
            "z1",
            "z2",
            [latent],
            "Computed from x alone through the map on the right, it depends on z2 only: the boundary is level.",
            square=True,
        ),
        Chart(
            "In the space that is seen",
            "x1",
            "x2",
            [seen, *points],
            "Claim: a diffeomorphism changes no probability. The same classifier behind a map that mixes both latents.",
            square=True,
        ),
    ]


def _dependence(records: list[Record], mismatch: bool) -> Chart:
    found = [record["metrics"] for record in records]
    bars = []
    for label in (0, 1):
        values = [[one["dependence"][name][label] for one in found] for name in _VARIABLES]
        bars.append(
            Bars(
                [*_VARIABLES.values()],
                [*map(mean, values)],
                f"class {label}",
                low=[*map(min, values)],
                high=[*map(max, values)],
            )
        )
    chance = mean(value for one in found for value in one["dependence_by_chance"])
    claim = (
        "The claim's condition is that the CDFs of the classes are functions of each other. Here they are not, and "
        "that of class 1 is expected to fail in class 0."
        if mismatch
        else "Claim: the CDF of the rest given z1, in class 1, does not depend on z1, in either class."
    )
    return Chart(
        f"Dependence on z1 given the class{_where(mismatch)}",
        "candidate for the orthogonal variable",
        "Kolmogorov-Smirnov distance",
        [*bars, Rule(chance, "95 % of shuffles stay below")],
        f"{claim} The distance is the largest between a quarter of the rows, by z1, and the others. Bars are means "
        "over seeds, whiskers the smallest and the largest.",
    )


def _posterior(posterior: dict[str, Any]) -> Chart:
    return Chart(
        "What the constructed variable says of the class",
        "CDF of the rest given z1",
        "P(class 1)",
        [
            Points(posterior["cdf"], posterior["found"], "full minus principal"),
            Points(posterior["cdf"], posterior["dropped_column"], "p(y | rest): z1 dropped"),
        ],
        "Claim (theorem 2): full minus principal is the posterior given any orthogonal variable, hence a function of "
        "it, whose points lie on a curve. Dropping the column z1 gives another classifier, which is no function of it.",
    )


def _where(mismatch: bool) -> str:
    return ", condition violated" if mismatch else ""


def _number(values: list[float]) -> str:
    largest = max(values)
    return f"{largest:.1e}" if largest < 1e-3 else f"{min(values):.3f} to {largest:.3f}"
