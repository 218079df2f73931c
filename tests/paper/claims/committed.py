"""The committed records of the claims, and whether an experiment still writes such records."""

from pathlib import Path

from setminus.records import read_records

RESULTS = Path(__file__).parents[3] / "results"


def committed(name):
    return read_records(RESULTS / name / "records.jsonl")


def has_the_keys_of(name, config, metrics):
    """Whether metrics have the keys of a committed record with these settings, at every depth."""
    (first, *_) = (one for one in committed(name) if config.items() <= one["config"].items())
    return keys(metrics) == keys(first["metrics"])


def keys(value):
    if isinstance(value, dict):
        return {key: keys(one) for key, one in value.items()}
    # the rows of a table have the keys of its first
    return [keys(value[0])] if isinstance(value, list) and value and isinstance(value[0], dict) else None
