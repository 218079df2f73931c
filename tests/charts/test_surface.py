"""A contour follows the level of its surface."""

from setminus.charts.surface import contour


def test_a_contour_is_where_the_surface_has_its_level():
    side = [i / 20 for i in range(-20, 21)]
    circle = contour(side, side, [[x * x + y * y for x in side] for y in side], 0.5)
    (ring,) = circle
    assert ring[0] == ring[-1] and len(ring) > 40
    assert all(abs(x * x + y * y - 0.5) < 0.005 for x, y in ring)
    assert contour(side, side, [side for _ in side], 2.0) == []
