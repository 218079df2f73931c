"""A record of a user's translation made by hand, with text that must be escaped wherever a user has a say."""

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"


def made_translation(role, baseline=False):
    """Of a factor to change, or to keep."""
    told = {"accuracy": 0.95, "n": 400, "by_chance": 0.541}
    scores = {
        "changed": 0.8,
        "kept": 0.95,
        "domain": 0.5,
        "structure": 0.7,
        "unrelated": 0.1,
        "matched": 0.9,
        "grain": 1.2,
        "distance": 0.12,
        "distance_interval": [0.05, 0.3],
        "verdict": "train longer",
    }
    directions = {"a_to_b": {**scores, "changed": 0.7}, "b_to_a": scores}
    return {
        "name": "transfer",
        "job": "translation",
        "config": {"size": 28, "steps": 400, "batch_size": 32, "learning_rate": 1e-3, "width": 32},
        "seed": 0,
        "versions": {"python": "3"},
        "command": "setminus transfer fit A B --change <i>hair</i>",
        "task": {
            "data": "men and <b>women</b>",
            "folders": ["men", "<b>women</b>"],
            "column": "<i>hair</i>",
            "values": ["dark", "<u>fair</u>"],
            "role": role,
            "kept_column": None,
            "network": "digit",
            "images": {"a": 800, "b": 800, "a_held": 200, "b_held": 200, "elsewhere": 0},
            "labelled": 2000,
            "notes": ["<script>careful</script>"],
        },
        "metrics": {
            "accuracy": {
                **dict.fromkeys(("column", "judge_domain", "judge_column"), told),
                "rest": {**told, "accuracy": 0.875},
            },
            "verdict": "train longer",
            "directions": directions,
            "baseline": {one: {**scores, "verdict": "do not use"} for one in directions} if baseline else {},
            "factors": {"column": {"prior": [0.5, 0.5], "a": [0.95, 0.05], "b": [0.05, 0.95]}},
            "curves": {"step": [200, 400], **{name: [one, one] for name, one in directions.items()}},
            "losses": {
                "step": [1, 2],
                **{name: [2.0, 1.0] for name in ("generators", "discriminators", "cycle")},
            },
            "samples": dict.fromkeys(("a", "a_to_b", "b", "b_to_a"), PNG),
            "baseline_samples": dict.fromkeys(("a", "a_to_b", "b", "b_to_a"), PNG) if baseline else {},
            "seconds_per_step": 0.15,
        },
        "steps": {"train the generators": 60.0},
        "seconds": 61.0,
    }
