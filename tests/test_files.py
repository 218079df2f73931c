import pytest

from setminus.files import written_whole


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with written_whole(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interruption_leaves_nothing_behind(tmp_path, error):
    path = tmp_path / "file"
    with pytest.raises(error), written_whole(path) as partial:
        partial.write_text("half")
        raise error
    assert list(tmp_path.iterdir()) == []
