"""`benchmarks/growth.py`: exponents are of the axis that grows, and who is judged is who has a horizon."""

import numpy as np
import pytest

from benching import loaded, quick


@pytest.fixture(scope="module")
def growth():
    yield from loaded("growth")


def runs(seconds):
    return [[seconds, 0.5, 200.0], [3.0 * seconds, 0.1, 300.0], [seconds, 0.1, 100.0]]


def test_exponents_are_slopes_of_medians_along_their_axis(growth):
    """Planted: time n at fixed d, d² at fixed n; one of three repetitions that is slow moves neither."""
    lengths = {growth.Stream("PIGD", n, 10): runs(1e-6 * n) for n in (10, 100, 1000)}
    widths = {growth.Stream(growth.SUMS, 500, d): runs(1e-6 * d**2) for d in (10, 30, 100)}
    assert growth.summary("n", lengths)["PIGD"]["exponent"] == pytest.approx(1.0)
    assert growth.summary("d", widths)[growth.SUMS]["exponent"] == pytest.approx(2.0)


def test_buffers_are_fitted_by_a_line_an_example(growth):
    found = {growth.Stream("FTRL", 1000, 54, b): runs(1e-3 * (0.5 + 0.25 * b)) for b in range(1, 5)}
    line = growth.summary("buffers", found)["FTRL"]["line"]
    assert (line["a"], line["b"]) == (pytest.approx(0.5), pytest.approx(0.25))


@pytest.mark.parametrize(("power", "met"), [(1.0, True), (0.94, False), (1.06, False)])
def test_learners_with_a_horizon_are_judged_along_n_alone(growth, power, met):
    names = ("PIGD", growth.ENDLESS)
    found = {growth.Stream(name, n, 10): runs(1e-6 * n**power) for name in names for n in (10, 1000)}
    made = growth.summary("n", found)
    assert made["PIGD"]["met"] is met
    assert "met" not in made[growth.ENDLESS]
    assert "met" not in growth.summary("d", {growth.Stream("PIGD", 10, d): runs(d) for d in (1, 2)})["PIGD"]


def test_axes_move_one_number_and_end_where_a_learner_does(growth):
    due = growth.axes(quick=False)
    assert {stream.d for stream in due["n"]} == {10}
    assert max(stream.n for stream in due["n"] if stream.learner == growth.ENDLESS) <= 2**23
    assert max(stream.d for stream in due["d"] if stream.learner == growth.SUMS) == 300
    assert {stream.d for stream in due["d"] if stream.learner == "FTRL"} == set(growth.WIDTHS)
    assert len({stream.n for stream in due["d"]}) == 1
    assert [stream.buffers for stream in due["buffers"]] == list(range(1, 9))


def test_every_stream_takes_its_turns(growth, monkeypatch):
    """Long ones fewer, and never all repetitions of one at once."""
    order = []
    monkeypatch.setattr(growth, "alone", lambda stream: order.append(stream) or [1.0, 1.0, 1.0])
    short, long = growth.Stream("PIGD", 10, 10), growth.Stream("PIGD", 10_000_000, 10)
    found = growth.take_turns([short, long], 5, growth.Console(quiet=True))
    assert order[:4] == [short, long, short, long]
    assert (len(found[short]), len(found[long])) == (5, 3)


def test_a_stream_has_as_many_buffers_as_named(growth):
    assert growth.opened(growth.Stream("FTRL", 100, 5, 3)).mechanism.buffers == 3
    assert growth.opened(growth.Stream("PGIGA", 100, 5)).timetable.horizon == 100


def test_the_picture_has_a_panel_for_each_axis(growth, tmp_path):
    pytest.importorskip("matplotlib")
    from growth_picture import draw

    axes = {
        "n": growth.summary("n", {growth.Stream("PIGD", n, 10): runs(1e-6 * n) for n in (10, 100)}),
        "buffers": growth.summary("buffers", {growth.Stream("FTRL", 10, 54, b): runs(b) for b in (1, 2, 3)}),
    }
    draw({"axes": axes}, tmp_path / "growth.svg")
    text = (tmp_path / "growth.svg").read_text()
    assert text.count('id="axes_') == 2


@pytest.mark.slow
def test_growth_runs(tmp_path):
    report = quick("growth", tmp_path)
    assert set(report["axes"]) == {"n", "d", "buffers"}
    assert all(np.isfinite(one["exponent"]) for made in report["axes"].values() for one in made.values())
