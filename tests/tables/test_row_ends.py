import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setminus.tables.row_ends import end_by_reading, last_row_end

values = st.text(alphabet='ab",;\n ', max_size=12)


@settings(deadline=None, max_examples=50)
@given(rows=st.lists(st.tuples(values, values), min_size=1, max_size=20))
def test_both_ways_to_the_end_of_a_row_agree(rows):
    ends = [0]
    text = io.StringIO(newline="")
    for row in rows:
        csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(row)
        ends.append(text.tell())
    whole = text.getvalue().encode()
    for cut in range(1, len(whole) + 1, 5):
        inside = [end for end in ends if end <= cut]
        assert last_row_end(whole[:cut], ",", b"\n") == inside[-1]
        # reading cannot know that the last row is complete
        assert end_by_reading(whole[:cut], ",") in inside[-2:]


@pytest.mark.parametrize(
    ("block", "end"),
    [
        (b"1,2\n3,4\n5", 8),
        (b"1,2", 0),
        (b'1,"2\n3,4\n', 0),
        (b'"a""b",1\n2,', 9),
        (b'5" pipe,1\n6" pipe,2\n7', 20),
        (b'5" pipe,1\n"a\nb",2\n7', 18),
        (b'5" pipe,1\n2\r,"x\ny",3\n7', 21),
    ],
)
def test_quotes_count_where_a_value_begins(block, end):
    assert last_row_end(block, ",", b"\n") == end
