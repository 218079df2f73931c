"""The rows of a table that ``setminus audit`` compares: labels, scores or decisions, and groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from setminus.core import Constraint
from setminus.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import ArrayLike, NDArray

    from setminus.commands.audit import AuditConfig
    from setminus.commands.scored_columns import ScoredColumns
    from setminus.commands.table_roles import Roles
    from setminus.estimators.groupings import Groupings
    from setminus.tables.reading import Table

__all__ = ["AuditedRows", "class_order", "judged_column", "read_audited", "read_scores"]

PREDICTION = "prediction"


@dataclass(frozen=True)
class AuditedRows:
    """What was read of the table: labels and scores may be missing."""

    y: NDArray[Any] | None
    proba: NDArray[np.float64] | None
    decisions: NDArray[Any] | None
    classes: list[Any] | None
    groups: pa.Table
    question: str
    class_names: dict[str, str]
    scored_by: str
    codes_or_values: str | None
    """A column of scores that has two readings."""
    notes: list[str]

    def groupings(self, config: AuditConfig, constraint: Constraint, counts: Any = None) -> tuple[Groupings, Groupings]:
        """The groups as they are, and those that the gaps compare; `counts`: how many rows each row represents."""
        from setminus.commands.table_roles import check_bins
        from setminus.estimators.groupings import Groupings, needed_labels

        edges, least = config.edges, config.min_group_size
        check_bins(edges, self.groups)
        codes = np.zeros(len(self.groups), dtype=np.intp)
        n_classes = 2
        if self.y is not None:
            labels, found = np.unique(self.y, return_inverse=True)
            codes, n_classes = found.astype(np.intp), len(labels)
        needed = needed_labels(constraint, n_classes)
        # as many rows as decide whether a group is small
        rows = np.repeat(np.arange(len(codes)), 1 if counts is None else np.minimum(counts, least))
        every = Groupings("both", least=1, small=None, bins=edges or None)
        compared = Groupings(least=least, small="merge" if least > 1 else None, bins=edges or None)
        for known in (every, compared):
            known.learn(self.groups.take(rows), codes[rows], needed=needed)
        return every, compared

    def asked(
        self, config: AuditConfig, constraint: Constraint, groupings: tuple[Groupings, Groupings]
    ) -> dict[str, Any]:
        """These rows and the settings, as `audit` takes them; classes go by name, since a code may be a value too."""
        every, compared = groupings
        classes = None if self.classes is None else self._named(self.classes).tolist()
        return {
            "y": None if self.y is None else self._named(self.y),
            "proba": self.proba,
            "sensitive_features": compared.named(self.groups),
            "attributes": dict(every.named_each(self.groups)),
            "classes": classes,
            # more than two classes have no favourable one unless it is named
            "favorable_label": classes[-1] if config.favorable and classes else None,
            "threshold": config.threshold if self.decisions is None else None,
            "y_pred": None if self.decisions is None else self._named(self.decisions),
            "constraint": constraint,
            "agg": config.agg,
            "tolerance": config.certify if config.fail_by == "point" else config.fail_above,
            "random_state": config.seed,
        }

    def _named(self, labels: ArrayLike) -> NDArray[Any]:
        if not self.class_names:
            return np.asarray(labels)
        distinct, codes = np.unique(labels, return_inverse=True)
        return np.array([self.class_names[str(label)] for label in distinct])[codes]


def read_audited(table: Table, config: AuditConfig) -> AuditedRows:
    """Labels, scores, decisions and groups of a table."""
    return _read_labelled(table, config, config.label) if config.label is not None else _read_unlabelled(table, config)


def _read_labelled(table: Table, config: AuditConfig, label: str) -> AuditedRows:
    from setminus.commands.scored_columns import ScoredColumns
    from setminus.commands.table_roles import Roles, read_rows

    roles = Roles(label, config.ignore, config.positive, favorable=config.favorable)
    rows = read_rows(table, roles)
    columns = ScoredColumns.of(table, roles)
    notes = list(rows.notes)
    scores = read_scores(columns, config)
    decided_only = not scores
    judged, decisions = judged_column(table, config), None
    if judged is not None and config.prediction is None:
        notes.append(f"the decisions are those of the column {judged}")
    if judged is not None:
        decisions, how = columns.decisions(rows.X, judged, own=config.prediction is not None)
        notes += how
    proba, classes = None if decided_only else columns.proba(rows.X, scores), columns.classes
    order = class_order(columns, roles)
    if order != sorted(order):
        # a threshold is that of the positive class
        if proba is not None and config.threshold is not None and len(classes) == 2:
            decisions = np.asarray(classes)[(proba[:, 1] >= config.threshold).astype(int)]
        classes, proba = [classes[k] for k in order], None if proba is None else proba[:, order]
    return AuditedRows(
        y=rows.y,
        proba=proba,
        decisions=decisions,
        classes=classes,
        groups=rows.groups,
        question=roles.question,
        class_names=roles.class_names,
        scored_by=", ".join(scores[k] for k in sorted(scores)) or str(judged),
        codes_or_values=scores[max(scores)] if scores and columns.are_codes and not config.score else None,
        notes=notes,
    )


def read_scores(columns: ScoredColumns, config: AuditConfig) -> dict[int, str]:
    """The column of scores by the position of its class; none where decisions alone are audited."""
    decided_only = config.prediction is not None and not config.score and not columns.has_scores
    return {} if decided_only else columns.scores(config.score)


def judged_column(table: Table, config: AuditConfig) -> str | None:
    """The column of decisions; by default that of ``setminus apply``, unless other scores or a threshold decide."""
    if config.prediction is not None or config.label is None:
        return config.prediction
    given = config.threshold is not None or config.score or PREDICTION not in table.names
    return None if given else PREDICTION


def class_order(columns: ScoredColumns, roles: Roles) -> list[int]:
    """The positions of the classes with the favourable one at the end: rates refer to the last."""
    names = [roles.class_names.get(str(one), str(one)) for one in columns.classes]
    return sorted(range(len(names)), key=lambda k: roles.favorable is not None and names[k] == roles.favorable_name)


def _read_unlabelled(table: Table, config: AuditConfig) -> AuditedRows:
    """Decisions, or one column of scores, of rows without labels: only selection rates can be compared."""
    from setminus.commands.table_roles import MAX_CLASSES, Roles, read_groups
    from setminus.tables.columns import check_names, to_numbers, to_text

    if config.constraint != "equalized_odds" and config.constraint != "demographic_parity":
        raise UserError(f"--constraint {config.constraint} needs labels", do="name them: --label COLUMN")
    name = config.prediction or (config.score[0] if len(config.score) == 1 else None)
    if name is None:
        raise UserError(
            "without --label, the decisions are needed",
            do="name them, --prediction COLUMN, or one column of probabilities, --score COLUMN.",
        )
    check_names([name, *config.ignore], table.names, table.path.name)
    table, data = table.load()
    groups, notes = read_groups(data, config.ignore)
    notes = [*table.notes, *notes, "there are no labels: only selection rates are compared"]
    names: dict[str, str] = {}
    decisions: NDArray[Any] | None = None
    proba: NDArray[np.float64] | None = None
    classes: list[Any] | None = None
    if config.prediction is None:
        if config.favorable not in (None, config.positive):
            raise UserError(
                "without --label, --score is the probability of the favourable value", do="leave --favorable out."
            )
        proba = to_numbers(data.column(name), name)
        missing = int(np.isnan(proba).sum())
        classes, names = [0, 1], Roles(name, (), config.positive).class_names
    else:
        column = to_text(data.column(name))
        missing = column.null_count
        decisions = np.asarray(column.to_pylist())
        # rates refer to the last class
        counts = config.favorable or config.positive
        if counts is not None and not missing:
            values = sorted({*decisions.tolist()})
            for value in filter(None, (config.positive, config.favorable)):
                check_names([value], values, f"the decisions {name!r}", what="value")
            decisions = np.asarray(decisions == counts, dtype=np.int64)
            classes, names = [0, 1], Roles(name, (), counts).class_names
    if missing:
        raise UserError(f"{missing:,} rows have no value in {name}", do="leave those rows out.")
    if decisions is not None and len(np.unique(decisions)) > MAX_CLASSES:
        raise UserError(
            f"{name} has {len(np.unique(decisions))} values", do="name the one that counts: --positive VALUE."
        )
    return AuditedRows(None, proba, decisions, classes, groups, name, names, name, None, notes)
