"""As many groups and classes as an eye can tell apart, the largest first, and a word on the rest."""

from setminus.report.drawn import choose_drawn


def audit_of(sizes, classes=(0, 1), frequencies=(1.0,)):
    judged = classes[1:] if len(classes) == 2 else classes
    rates = [
        {"group": group, "label": label, "n": n, "base_rate": frequency}
        for group, n in sizes.items()
        for label, frequency in zip(judged, frequencies, strict=True)
    ]
    return {"classes": list(classes), "group_rates": rates}


def test_all_that_fits_is_drawn_without_a_word():
    drawn = choose_drawn(audit_of({"b": 1, "a": 2}), {})
    assert drawn.places == {"a": 0, "b": 1}
    assert drawn.judged == (1,)
    assert drawn.labels == (0, 1)
    assert drawn.left_out == ""


def test_the_largest_groups_keep_a_sign():
    drawn = choose_drawn(audit_of({letter: size for size, letter in enumerate("hgfedcba")}), {})
    assert list(drawn.places) == ["a", "b", "c", "d", "e", "f"]
    assert drawn.has("a")
    assert not drawn.has("h")
    assert "the 6 largest of 8 groups;" in drawn.left_out


def test_the_most_frequent_classes_are_drawn_in_their_order():
    drawn = choose_drawn(audit_of({"a": 100}, tuple("vwxyz"), (0.1, 0.3, 0.05, 0.25, 0.3)), {"v": "five"})
    assert drawn.judged == drawn.labels == ("v", "w", "y", "z")
    assert drawn.class_name("v") == "five"
    assert "the 4 most frequent of 5 classes;" in drawn.left_out


def test_crossed_columns_are_one_group():
    audit = audit_of({"a": 1})
    audit["group_rates"][0]["group"] = ["f", 30]
    assert choose_drawn(audit, {}).has(["f", 30])
