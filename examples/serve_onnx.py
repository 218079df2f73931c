"""Serve an exported model over HTTP: python serve_onnx.py model.onnx 8000. Needs onnxruntime, and not setminus."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import onnxruntime


def serve(path: str, port: int) -> ThreadingHTTPServer:
    """A server that answers a POST of JSON rows, [{"age": 39, "job": "cook"}], with a decision for each."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    about = {name: json.loads(text) for name, text in session.get_modelmeta().custom_metadata_map.items()}

    def column(name: str, values: list) -> np.ndarray:
        if about["inputs"][name]["kind"] != "text":
            return np.array([[np.nan if value is None else float(value)] for value in values])
        missing = about["inputs"][name].get("missing", "")
        return np.array([[missing if value is None else str(value).strip()] for value in values], dtype=object)

    def answers(rows: list[dict]) -> list[dict]:
        feeds = {one.name: column(one.name, [row.get(one.name) for row in rows]) for one in session.get_inputs()}
        labels, proba = (output.tolist() for output in session.run(None, feeds))
        named = [dict(zip(about["classes"], row, strict=True)) for row in proba]
        return [{"label": label, "probabilities": row} for label, row in zip(labels, named, strict=True)]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            try:
                code, answer = 200, answers(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            except Exception as error:
                code, answer = 400, {"error": str(error)}
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2])).serve_forever()
