"""What is said below a table of style transfer is what its records hold, and no more."""

from setminus_paper.report.style_transfer_notes import about, notes, scoring
from setminus_paper.report.style_transfer_rows import rows_of

from tests.made_transfers import made_digits, made_faces, made_transfer


def told(records):
    return notes(records, rows_of(records))


def test_what_differs_from_the_paper_is_said_and_no_more():
    records = [made_digits("vanilla", seed) for seed in (0, 1)]
    for record in records:
        record["config"]["norm"] = "group"
    size, norm, chosen = told(records)
    assert "28 pixels a side" in size
    assert "32 channels; 20 steps of 32 images of each domain at a rate of 0.001. The paper has 28 pixels" in size
    assert "GroupNorm in place of the paper's BatchNorm" in norm
    assert "chosen on seed 0" in chosen
    for record in records:
        record["config"] |= {"norm": "batch", "scale": "paper"}
        record["metrics"]["row"]["label"] = "w_x \\ w_1 (TRM, last layer)"
    (_, learned) = told(records)
    assert "That stage is ours" in learned


def test_faces_have_other_sizes_features_and_groups():
    oracle = made_faces("orthogonal_oracle")
    oracle["metrics"]["row"]["of_groups"] = True
    fid, size, groups, seeds, plain, chosen, of_groups = told([made_faces("vanilla"), oracle])
    assert "by the features of a classifier of <four> groups" in fid
    assert "FIDs by other features are on another scale" in fid
    assert "64 pixels a side" in size
    assert "UNet for 128 pixels, batches of 32 images at 0.0002, and 12 epochs" in size
    assert groups.startswith("To train on: 3,200 men without blond hair, 88 men with blond hair, 2,500 women")
    assert seeds.startswith("Each row is one run of one seed")
    assert "from the first step on" in plain
    assert "chosen of two that ran to the end with this seed" in chosen
    assert "read off one classifier of the four groups" in of_groups
    assert "read off" not in " ".join(told([made_faces("vanilla"), made_faces("orthogonal_trm")]))


def test_what_the_ratio_tells_of_each_factor_is_said():
    record = made_faces("orthogonal_oracle", log_ratio={"mean": [3.0, -1.0, 2.0, -2.0], "sd": [1.0] * 4})
    (note,) = [one for one in told([made_faces("vanilla"), record]) if "logarithm" in one]
    assert "w_x \\ w_1 (Oracle) 4.0 and 1.0." in note
    assert "logarithm" not in " ".join(told([made_faces("vanilla", log_ratio=None)]))


def test_fids_by_the_papers_features_are_not_called_incomparable():
    (fid, *_) = told([made_faces("vanilla", fid_features="Inception")])
    assert "Inception" in fid
    assert "scale" not in fid


def test_rows_of_several_lengths_are_not_passed_off_as_alike():
    long, short = made_faces("vanilla", steps=2000), made_faces("orthogonal_trm", steps=800)
    text = " ".join(told([long, short]))
    assert "800 to 2,000 steps" in text
    assert "only those of one length can be compared" in text
    assert "only those of one length" not in " ".join(told([long]))


def test_single_seeds_are_named_where_others_have_more():
    records = [made_transfer("vanilla", 0), made_transfer("vanilla", 1), made_transfer("orthogonal_oracle")]
    assert any(note.startswith("w_x \\ w_1 (Oracle): each is one run of one seed") for note in told(records))


def test_how_the_scores_came_about():
    assert "right on 99.9 % and 100.0 % of held-out images)." in scoring([made_digits("vanilla")])
    assert "say the same of 98.0 %" in scoring([made_digits("vanilla")])
    faces = scoring([made_faces("vanilla")])
    assert "the groups counted alike" in faces
    assert "pixels" not in faces


def test_an_experiment_that_is_not_known_is_told_in_general_words():
    assert about("table1").changes == "the digit's color changes"
    assert about("table6").stays == about("table2").stays == "the hair color stays"
    assert (about("mine").changes, about("mine").data) == ("z1 changes", "")
