"""Records to one HTML file that works offline."""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Any

from setminus.core.gaps import gap_key
from setminus.errors import MissingExtraError
from setminus.files import atomic_write
from setminus.records import RecordError
from setminus.report.adapted_table import adapted_table_section
from setminus.report.fairness import GAPS, audit_section, fairness_section, outcome
from setminus.report.translation import translation_section

__all__ = [
    "build_page",
    "environment",
    "experiment_sections",
    "made_by",
    "outcome_text",
    "same_experiment",
    "vega_script",
    "write_page",
]

SECTIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "adapted_table": adapted_table_section,
    "audit": audit_section,
    "fairness": fairness_section,
    "translation": translation_section,
}
END_OF_SCRIPT = "\n// end of the script\n"
EXTENSIONS = "setminus.sections"
"""Entry points of other packages: a job, and the function from all records of one experiment to its section, whose
`package` holds the template."""


def build_page(records: Sequence[dict[str, Any]]) -> str:
    """The page as text: a section for each record, or for all records of an experiment, in the given order.

    Parameters
    ----------
    records : sequence of dict
        Each with a known `job`.

    Returns
    -------
    str
        HTML with style, script and figures inside; every text from a record is escaped.
    """
    if not records:
        raise RecordError("there are no records", expected="at least one, such as the last of `setminus demo`")
    experiments = experiment_sections()
    unknown = sorted({str(record.get("job")) for record in records} - {*SECTIONS, *experiments})
    if unknown:
        known = ", ".join(sorted([*SECTIONS, *experiments]))
        raise RecordError(f"no section shows the job {', '.join(unknown)}", expected=f"one of {known}")
    groups = _together(records)
    sections = [{"id": number, "brief": False, **_section(group)} for number, group in enumerate(groups)]
    figures = {f"{section['id']}-{figure.id}": figure.spec for section in sections for figure in section["figures"]}
    packages = frozenset(section["package"] for section in sections if "package" in section)
    template = environment(packages).get_template("page.html.j2")
    page: str = template.render(
        records=[_made_by(group) for group in groups],
        sections=sections,
        figures_json=_script_safe(json.dumps(figures, allow_nan=False)),
        vega_js=vega_script(),
    )
    return page


def outcome_text(record: dict[str, Any]) -> str:
    """What a fit ended with, in one sentence or two: the words of the page for the terminal.

    Parameters
    ----------
    record : dict
        Of a run whose job is "fairness".
    """
    metrics, config = record["metrics"], record["config"]
    text: str = (
        environment()
        .get_template("outcome.j2")
        .render(
            outcome=outcome(metrics),
            certificate=metrics.get("certificate"),
            gap_title=GAPS[gap_key(config["constraint"], config["agg"])],
            tolerance=metrics["frontier"]["tolerance"],
        )
    )
    return text.strip()


def write_page(path: str | os.PathLike[str], records: Sequence[dict[str, Any]]) -> Path:
    """Write the page of `build_page` to a file, and make its folder if it does not exist.

    Returns
    -------
    Path
        The file.
    """
    page = build_page(records)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(target) as partial:
        # file names need not be UTF-8
        partial.write_text(page, encoding="utf-8", errors="backslashreplace")
    return target


def same_experiment(record: dict[str, Any]) -> tuple[str, str]:
    """The experiment and its scale: records that share both go into one section."""
    return str(record["name"]), str(record["config"].get("scale", ""))


def made_by(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How the records of an experiment were made, in the form of one record."""
    configs, last = [_settings(record["config"]) for record in records], records[-1]
    varied = {key for config in configs for key in config if config[key] != configs[0].get(key)}
    steps: dict[str, float] = {}
    for record, settings in zip(records, configs, strict=True):
        # settings that all runs share would only hide the differences
        config = {key: value for key, value in settings.items() if key in varied}
        step = ", ".join(f"{key} {value}" for key, value in config.items()) or record["name"]
        steps[step] = steps.get(step, 0.0) + record["seconds"]
    return {
        **{key: last[key] for key in ("name", "job", "versions")},
        "commands": list(dict.fromkeys(record["command"] for record in records)),
        "seed": ", ".join(map(str, sorted({record["seed"] for record in records}))),
        "steps": steps,
        "seconds": sum(steps.values()),
        "date": last.get("date"),
    }


def _settings(config: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run; nested ones have both names."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        flat |= {f"{key} {inner}": one for inner, one in value.items()} if isinstance(value, dict) else {key: value}
    return flat


def experiment_sections() -> dict[str, Callable[[list[dict[str, Any]]], dict[str, Any]]]:
    """Jobs of other packages whose records make one section for each experiment, not for each record."""
    return {point.name: point.load() for point in entry_points(group=EXTENSIONS)}


def _together(records: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The records of each section."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for number, record in enumerate(records):
        groups.setdefault(same_experiment(record) if record["job"] not in SECTIONS else number, []).append(record)
    return list(groups.values())


def _section(group: list[dict[str, Any]]) -> dict[str, Any]:
    job = group[0]["job"]
    return SECTIONS[job](group[0]) if job in SECTIONS else experiment_sections()[job](group)


def _made_by(group: list[dict[str, Any]]) -> dict[str, Any]:
    first = group[0]
    first = {"date": None, **first}
    return {**first, "commands": [first["command"]]} if first["job"] in SECTIONS else made_by(group)


@functools.cache
def environment(packages: frozenset[str] = frozenset(), finalize: Callable[[Any], Any] | None = None) -> Any:
    """What renders the templates: of this package, and of others that have sections on the page.

    `finalize` is applied to every value that a template shows.
    """
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtraError("the page", "jinja2 and vl-convert-python", extra="cli") from error
    found = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name) for name in ("setminus.report", *sorted(packages))]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=finalize,
    )
    found.filters["percent"] = lambda share: "n/a" if share is None else f"{100 * share:.1f} %"
    # adding 0 makes a zero of minus zero
    found.filters["decimals"] = lambda value: "n/a" if value is None else f"{round(value, 3) + 0.0:.3f}"
    found.filters["thousands"] = lambda count: f"{count:,}"
    found.filters["sentence"] = lambda text: text[:1].upper() + text[1:]
    found.filters["markdown"] = _rendered
    return found


def _rendered(text: str) -> Any:
    """Markdown as HTML: markup in it is shown as text, and nothing is loaded."""
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    reader = MarkdownIt("js-default").disable(["image", "html_block", "html_inline"])
    tokens = reader.parse(text)
    for token in tokens:
        # below the headings of the page
        token.tag = "h4" if token.type in ("heading_open", "heading_close") else token.tag
    return Markup(reader.renderer.render(tokens, reader.options, {}))  # noqa: S704


@functools.cache
def vega_script() -> str:
    """The script that draws the figures. It is cached in the user's folder, since bundling it takes two seconds."""
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("the page", "jinja2 and vl-convert-python", extra="cli") from error
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "setminus"
    file = folder / f"vega-{version('vl-convert-python')}.js"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        kept = file.read_text(encoding="utf-8")
        if kept.endswith(END_OF_SCRIPT):
            return kept
    # its stub asks for an argument that has a default
    bundle: Any = vl_convert.javascript_bundle
    script: str = bundle().strip() + END_OF_SCRIPT
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(file) as partial:
            partial.write_text(script, encoding="utf-8")
    return script


def _script_safe(text: str) -> str:
    """JSON that cannot end the script element around it."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
