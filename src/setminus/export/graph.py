"""A graph of ONNX operators that is built node by node, with the columns that go into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from setminus.errors import UserError

__all__ = ["IR_VERSION", "OPSETS", "Column", "Graph", "Matrix", "Rows"]

OPSETS = {"": 21, "ai.onnx.ml": 5}
"""Versions of the operators. The trees of ai.onnx.ml 5 compute in float64 and know sets of categories."""

IR_VERSION = 10
"""Version of the file format that belongs to these operators."""

TYPES = {"text": TensorProto.STRING, "number": TensorProto.DOUBLE}


@dataclass(frozen=True)
class Column:
    """One column of a frame, a tensor of shape (n, 1): text as strings, all else as float64.

    Attributes
    ----------
    name : str
    tensor : str
    text : bool
    levels : int, optional
        The tensor holds codes from 0 to below this, or NaN.
    """

    name: str
    tensor: str
    text: bool
    levels: int | None = None


@dataclass(frozen=True)
class Matrix:
    """A float64 tensor of shape (n, width)."""

    tensor: str
    width: int


Rows = list[Column] | Matrix
"""What an estimator is given: the columns of a frame, or an array."""


class Graph:
    """Nodes, constants and inputs; a node that is there already is not added again.

    Examples
    --------
    >>> graph = Graph()
    >>> doubled = graph.add("Add", graph.input("X", "number", 2), "X")
    >>> graph.add("Add", "X", "X") == doubled
    True
    >>> [node.op_type for node in graph.model({"Y": (doubled, TensorProto.DOUBLE, 2)}, {}).graph.node]
    ['Add', 'Identity']
    """

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}
        self.inputs: dict[str, onnx.ValueInfoProto] = {}
        self.about_inputs: dict[str, dict[str, str]] = {}
        self._known: dict[Any, list[str]] = {}

    def input(self, name: str, kind: str, width: int = 1) -> str:
        """Declare an input of shape (n, width), "text" or "number"; return its name."""
        if not name:
            raise UserError("a column has no name", do="give each column a name: an ONNX input needs one.")
        if name not in self.inputs:
            self.inputs[name] = helper.make_tensor_value_info(name, TYPES[kind], ["rows", width])
            self.about_inputs[name] = {"kind": kind}
        return name

    def missing_word(self, column: Column, words: Sequence[str]) -> str:
        """The text that stands for a missing value of a column, where `words` are values: empty, if that is none."""
        about = self.about_inputs[column.name]
        word = about.setdefault("missing", "" if "" not in words else "<missing>")
        if word in words:
            raise UserError(
                f"column {column.name!r} has the value {word!r} in one part of the model and not in another",
                do="fit all parts on the same rows.",
            )
        return word

    def constant(self, values: Any) -> str:
        """The name of a constant: numbers as float64, whole numbers as int64, truth values, text."""
        array = np.asarray(values)
        array = array.astype({"f": np.float64, "i": np.int64, "u": np.int64, "b": bool}.get(array.dtype.kind, object))
        key = ("constant", array.dtype.str, array.shape, array.tobytes() if array.dtype != object else str(values))
        if key not in self._known:
            name = self._name("constant")
            self.initializers[name] = numpy_helper.from_array(array, name)
            self._known[key] = [name]
        return self._known[key][0]

    def add(self, op: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add a node of one output, or find it; `name` is what an error of the runtime shows."""
        found = sorted(attributes.items())
        key = (
            op,
            inputs,
            tuple((k, v.SerializeToString() if hasattr(v, "SerializeToString") else repr(v)) for k, v in found),
        )
        if key not in self._known:
            output = self._name(op)
            domain = "ai.onnx.ml" if op in ("LabelEncoder", "TreeEnsemble") else ""
            node = helper.make_node(op, inputs, [output], name=name or output, domain=domain, **attributes)
            self.nodes.append(node)
            self._known[key] = [output]
        return self._known[key][0]

    def inline(self, model: onnx.ModelProto, inputs: Sequence[str], part: str) -> list[str]:
        """Take over the nodes of another model; return its outputs."""
        prefix = self._name(part)
        renamed = {value.name: name for value, name in zip(model.graph.input, inputs, strict=True)}
        for tensor in model.graph.initializer:
            renamed[tensor.name] = f"{prefix}_{tensor.name}"
            self.initializers[renamed[tensor.name]] = numpy_helper.from_array(
                numpy_helper.to_array(tensor), renamed[tensor.name]
            )
        for node in model.graph.node:
            _check_lasting(node, part)
            node = onnx.NodeProto.FromString(node.SerializeToString())
            names = [renamed.get(name, name) for name in node.input]
            renamed |= {name: f"{prefix}_{name}" for name in node.output if name}
            outputs = [renamed.get(name, name) for name in node.output]
            del node.input[:], node.output[:]
            node.input.extend(names)
            node.output.extend(outputs)
            node.name = f"{prefix}_{node.name}"
            self.nodes.append(node)
        return [renamed[value.name] for value in model.graph.output]

    # arithmetic in the words of numpy

    def matrix(self, rows: Rows, part: str) -> Matrix:
        """Columns side by side as one array of numbers."""
        if isinstance(rows, Matrix):
            return rows
        words = [column.name for column in rows if column.text]
        if words:
            raise UserError(
                f"{part} is given the text column {words[0]!r} and cannot be exported so",
                do="encode text by TableEncoder, OrdinalEncoder or OneHotEncoder in the model's pipeline.",
            )
        tensors = [column.tensor for column in rows]
        return Matrix(tensors[0] if len(tensors) == 1 else self.add("Concat", *tensors, axis=1), len(rows))

    def column(self, tensor: str, positions: Sequence[int]) -> str:
        """Some columns of an array."""
        return self.add("Gather", tensor, self.constant(np.array(positions, dtype=np.int64)), axis=1)

    def log(self, proba: str, floor: float) -> str:
        """``log(max(proba, floor))``."""
        return self.add("Log", self.add("Max", proba, self.constant(floor)))

    def affine(self, x: str, weight: NDArray[Any], bias: NDArray[Any]) -> str:
        """``x @ weight + bias``."""
        return self.add("Add", self.add("MatMul", x, self.constant(weight)), self.constant(bias))

    def softmax(self, logits: str) -> str:
        """Probabilities from unnormalised logs."""
        # by its parts: the operator Softmax of some runtimes computes in float32
        top = self.add("ReduceMax", logits, self.constant([1]), keepdims=1)
        raised = self.add("Exp", self.add("Sub", logits, top))
        return self.add("Div", raised, self.add("ReduceSum", raised, self.constant([1]), keepdims=1))

    def two_classes(self, second: str) -> str:
        """The probabilities of two classes from that of the second, of shape (n, 1)."""
        return self.add("Concat", self.add("Sub", self.constant(1.0), second), second, axis=1)

    def cast(self, tensor: str, kind: int = TensorProto.DOUBLE) -> str:
        """A tensor of another type."""
        return self.add("Cast", tensor, to=kind)

    def model(self, outputs: dict[str, tuple[str, int, int | None]], metadata: dict[str, str]) -> onnx.ModelProto:
        """The finished model: each output by name, with its tensor, its type, and its width (None: shape (n,))."""
        self.nodes += [
            helper.make_node("Identity", [tensor], [name], name=f"output_{name}")
            for name, (tensor, _, _) in outputs.items()
        ]
        used = {name for node in self.nodes for name in node.input}
        shapes = [
            helper.make_tensor_value_info(name, kind, ["rows"] if width is None else ["rows", width])
            for name, (_, kind, width) in outputs.items()
        ]
        graph = helper.make_graph(
            self.nodes,
            "setminus",
            [value for name, value in self.inputs.items() if name in used],
            shapes,
            initializer=list(self.initializers.values()),
        )
        imports = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        made = helper.make_model(graph, opset_imports=imports, producer_name="setminus")
        made.ir_version = IR_VERSION
        helper.set_model_props(made, metadata)
        onnx.checker.check_model(made)
        return made

    def _name(self, stem: str) -> str:
        taken = len(self._known) + len(self.nodes) + len(self.initializers)
        # inputs are called as the user's columns are
        while (name := f"{stem}_{taken}") in self.inputs or name in self.initializers:
            taken += 1
        return name


def _check_lasting(node: onnx.NodeProto, part: str) -> None:
    """Raise for an operator that these versions no longer have, such as the float32 trees of other converters."""
    if node.domain in OPSETS and not onnx.defs.has(
        node.op_type, max_inclusive_version=OPSETS[node.domain], domain=node.domain
    ):
        raise UserError(f"{part} needs the operator {node.op_type!r}, which is unknown", do="use another estimator.")
    if node.domain == "ai.onnx.ml" and node.op_type in ("TreeEnsembleClassifier", "TreeEnsembleRegressor"):
        raise UserError(
            f"{part} cannot be exported: its trees would be rounded to float32",
            do="use HistGradientBoostingClassifier, RandomForestClassifier, LightGBM or XGBoost instead.",
        )
