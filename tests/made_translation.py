"""A record of a user's translation made by hand, with text that must be escaped wherever a user has a say."""

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"


def made_translation(role):
    """Of a factor to change, or to keep."""
    told = {"accuracy": 0.95, "n": 400, "by_chance": 0.541}
    changed = {"domain": 0.9, "column": 0.8, "rest": 0.1}
    return {
        "name": "transfer",
        "job": "translation",
        "config": {
            "size": 28,
            "translation": {"steps": 400, "batch_size": 32, "rate": 1e-3, "width": 32, "seed": 0},
        },
        "seed": 0,
        "versions": {"python": "3"},
        "command": "setminus transfer fit A B --change <i>hair</i>",
        "task": {
            "data": "men and <b>women</b>",
            "folders": ["men", "<b>women</b>"],
            "column": "<i>hair</i>",
            "values": ["dark", "<u>fair</u>"],
            "role": role,
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
            "given": {"a": [0.95, 0.05], "b": [0.05, 0.95]},
            "changed": {"both": changed, "a_to_b": {**changed, "column": 0.7}, "b_to_a": changed},
            "curves": {"step": [200, 400], "domain": [0.5, 0.9], "column": [0.4, 0.8], "rest": [0.0, 0.1]},
            "losses": {
                "step": [1, 2],
                **{name: [2.0, 1.0] for name in ("generators", "discriminators", "cycle")},
            },
            "samples": dict.fromkeys(("a", "a_to_b", "b", "b_to_a"), PNG),
            "seconds_per_step": 0.15,
        },
        "steps": {"train the generators": 60.0},
        "seconds": 61.0,
    }
