"""Words that tables, records and options seldom hold, and ways to damage bytes and JSON."""

from hypothesis import strategies as st


def listed(text):
    """The parts between strokes."""
    return text.split("|")


MARKER = "zqx"
"""In every text that is written into a record: on a page it may only stand as text."""
HTML = listed("<script>zqx</script>|\"><img src=x onerror=zqx>|' zqx='1|</script><b zqx>|<!--zqx|javascript:zqx")
CONTROLS = listed("\x1b[31mred\x1b[0m|\x1b]0;title\x07|\x9b31m|over\rwritten|\u202eevil|nul\x00|\x7f|\x85")
NUMBERS = listed(f"-1|0|1|0.5|2|1e308|1e-320|inf|-inf|nan||x|1e3|{2**32}|{2**64}")
WORDS = [
    *listed("| |NA|nan|inf|-inf|?|null|1e400|-1e400|1,234.5|1.234,5|1 000|007|-0|99999999999999999999|0x1F|1_000|true"),
    *listed(
        'yes|2020-01-01|2020-01-01T00:00:00Z|31.12.99|25:61|"|\'|""|a,b|a;b|a\tb|a\nb|a\r\nb|\ufeff|\u2028|männlich'
    ),
    *listed("日本|\\|[/bold]|=1+1|%s|{}|__index_level_0__|proba_high|prediction|column_1|a.b|--help"),
    *("x" * 70_000, *CONTROLS, *HTML),
]
PATHS = [
    *listed(
        "|.|..|out|out/|people.csv|./people.csv|model.skops|missing/deeper/new.csv|new|new.xyz|new.csv|-|~|x.PARQUET"
    ),
    *listed("people.csv/new.csv|\udcff\udcfe.csv|\x1b[31m.csv|new\n.csv|out/page.html|out/scored.csv|out/model.skops"),
    *listed("out/audit.json|/proc/new.csv|link.csv|loop.csv|dangling.csv|new.csv.gz|new.arrow|new.tsv|.csv|translator"),
    *("a" * 300, "a" * 300 + ".csv"),
]
FRONTS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\x00", b"PAR1", b"\x1f\x8b", b"PK\x03\x04", b"\n\n", b'"')
VALUES = (None, True, -1, 10**400, 1e308, float("nan"), float("inf"), [], {}, [[]], [None], "x" * 70_000)

words = st.sampled_from(WORDS) | st.text(st.characters(codec="utf-8"), max_size=8)
html_or_controls = st.sampled_from([*HTML, *CONTROLS]).map(lambda text: text + MARKER)


@st.composite
def damaged(draw, content):
    """Bytes with one to three damages."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(0, len(content) - 1)))
        end = draw(st.integers(at, min(len(content), at + 200)))
        match draw(st.sampled_from(("cut", "flip", "insert", "remove", "repeat", "splice", "zeros", "front"))):
            case "cut":
                content = content[:at]
            case "flip" if content:
                bit = 1 << draw(st.integers(0, 7))
                content = content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]
            case "insert":
                content = content[:at] + draw(st.binary(min_size=1, max_size=12)) + content[at:]
            case "remove":
                content = content[:at] + content[end:]
            case "repeat":
                content = content[:end] + content[at:end] * draw(st.integers(1, 50)) + content[end:]
            case "splice":
                content = content[:at] + content[len(content) - end :]
            case "zeros":
                content = content[:at] + bytes(end - at) + content[end:]
            case "front":
                content = draw(st.sampled_from(FRONTS)) + content
    return content


@st.composite
def poisoned(draw, tree):
    """JSON with one to three of its values replaced, left out, or under another key."""
    for _ in range(draw(st.integers(1, 3))):
        if not (places := list(_places(tree))):
            break
        holder, key = places[draw(st.integers(0, len(places) - 1))]
        match draw(st.sampled_from(("value", "text", "remove", "rename"))):
            case "value":
                holder[key] = draw(st.sampled_from(VALUES))
            case "text":
                holder[key] = draw(html_or_controls)
            case "remove":
                del holder[key]
            case "rename" if isinstance(holder, dict):
                holder[draw(html_or_controls)] = holder.pop(key)
    return tree


def with_text(tree, text):
    """JSON with a text added to each of its texts, but for those that choose what shows them."""
    if isinstance(tree, dict):
        kept = ("job", "name", "method", "status")
        return {key: value if key in kept else with_text(value, text) for key, value in tree.items()}
    if isinstance(tree, list):
        return [with_text(value, text) for value in tree]
    return tree + text if isinstance(tree, str) else tree


def _places(tree):
    """Every (container, key) of a tree."""
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])
