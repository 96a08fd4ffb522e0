"""`benchmarks/stages.py`: stages add up to the whole, and noise that is given was drawn before."""

import pytest

from benching import loaded


@pytest.fixture(scope="module")
def stages():
    yield from loaded("stages")


@pytest.fixture(scope="module")
def stream(stages):
    """PIGD, and the 500 rows it learns from."""
    return stages.cases(0.005)["PIGD, d=54"]


def test_parts_add_up_to_the_whole(stages):
    """Sampling is noise less bits, learning what is left without examples; what is left of the whole is said."""
    parts = stages.parts({"whole": 10.0, "noise given": 6.0, "noise": 3.0, "bits": 1.0, "examples": 2.0})
    assert parts == {"bits": 1.0, "sampling": 2.0, "examples": 2.0, "learning": 4.0, "the rest": 1.0}


def test_portions_are_of_all_releases(stages, stream):
    """PIGD releases at every row, and so few fit into one portion."""
    private, rows = stream
    assert stages.portions(private, len(rows)) == [(1, 500)]


def test_noise_that_is_given_is_as_much_as_a_portion_takes(stages, stream, monkeypatch):
    """Drawn once, and before the work."""
    private, rows = stream
    asked = []
    monkeypatch.setattr(type(private.calibrated), "noise_for", lambda _, *portion: asked.append(portion))
    stages.given_noise(private, rows)
    assert asked == [(None, 1, 500)]


def test_a_stream_that_is_given_noise_draws_none(stages, stream, monkeypatch):
    """Where there are no bits it learns all the same; noise alone fails."""
    private, rows = stream
    given, alone = stages.given_noise(private, rows), stages.noise_alone(private, len(rows))
    monkeypatch.setattr("taciturn.mechanisms.release_noise.secret_bits", lambda: 1 / 0)
    given()
    with pytest.raises(ZeroDivisionError):
        alone()
