"""`taciturn budget`: one ledger for several processes, shown in epsilon, with a history that can be verified."""

import json
import shutil
import sqlite3
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from taciturn import BudgetExhausted, Cost, InvalidInput, L2Ball, Ledger, Logistic, Privacy, Problem, User, pftrl, pigd
from taciturn.cli.app import app
from taciturn.errors import StateConflict
from taciturn.plan import recommend
from taciturn.store import Store
from tags import tags

PROBLEM = Problem(Logistic(), L2Ball(1.0), dimension=2, ridge=0.1)


def run(*arguments):
    return CliRunner().invoke(app, [str(part) for part in arguments], env={"COLUMNS": "100"})


def answer(*arguments):
    done = run(*arguments, "--json")
    assert done.exception is None or done.exit_code == 1, done.exception
    return json.loads(done.stdout)


def edit(path, statement):
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()


@pytest.fixture
def address(tmp_path):
    """A ledger with two streams and a one-off charge, made by two teams."""
    path = tmp_path / "budget.db"
    run("budget", "create", path, "--epsilon", 1, "--delta", "1e-6", "--population", "customers")
    pigd(PROBLEM, Privacy(0.5, 1e-6), horizon=10).start(Ledger(path))
    pigd(PROBLEM, Privacy(0.4, 1e-6), horizon=10).start(Ledger(path))
    Ledger(path).charge(Cost(plain_epsilon=0.1))
    return path


def test_create_says_what_it_made_and_is_found_by_another_process(tmp_path):
    path = tmp_path / "budget.db"
    done = run("budget", "create", path, "--epsilon", 2, "--delta", "1e-5", "--neighbours", "zero-out")
    assert "ledger of people" in done.stdout
    ledger = Ledger(path)
    assert ledger.privacy == Privacy(2.0, 1e-5)
    assert ledger.neighbours == "zero-out"
    assert "already" in str(run("budget", "create", path, "--epsilon", 2, "--delta", "1e-5").exception)


def test_show_states_epsilon_first_and_mu_second(address):
    text = run("budget", "show", address).stdout
    reserved = Ledger(address).reserved
    assert "customers: epsilon = 1 at delta = 1e-06" in text
    [line] = [line for line in text.splitlines() if line.startswith("reserved  ")]
    assert line.index("epsilon") < line.index("mu")
    assert float(line.split()[3]) == pytest.approx(reserved.epsilon(1e-6), rel=1e-3)
    assert text.count("pigd") == 2
    assert "one-off" in text
    assert "█" in text or "▒" in text


def test_show_as_json_has_every_number(address):
    data = answer("budget", "show", address)
    ledger = Ledger(address)
    assert data["reserved"]["epsilon"] == ledger.reserved.epsilon(1e-6)
    assert data["spent"]["epsilon"] == ledger.spent.epsilon(1e-6)
    assert data["left"]["epsilon"] == pytest.approx(ledger.left)
    assert {row["lineage"] for row in data["streams"]} == set(ledger.lines)
    assert [row["recipe"] for row in data["streams"]] == ["pigd", "pigd", "not recorded"]
    assert 0.0 <= data["share_spent"] <= data["share_reserved"] <= 1.0
    assert data["warning"] is None


def test_the_numbers_are_on_the_safe_side(address):
    """What is shown as reserved is no less than it is, and what is left no more, up to the end of a bisection."""
    text = run("budget", "show", address).stdout
    ledger = Ledger(address)
    shown = {line.split()[0]: float(line.split()[3]) for line in text.splitlines() if "  epsilon = " in line}
    assert shown["reserved"] >= ledger.reserved.epsilon(1e-6)
    assert shown["left"] <= ledger.left * (1.0 + 1e-8)


def test_an_empty_ledger_shows_all_of_it(tmp_path):
    run("budget", "create", tmp_path / "b.db", "--epsilon", 1, "--delta", "1e-6")
    text = run("budget", "show", tmp_path / "b.db").stdout
    assert "left      epsilon = 1 (mu 0.2367)" in text
    assert "No stream" in text


def test_show_as_a_page(address, tmp_path):
    done = run("budget", "show", address, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Wrote" in done.stdout
    assert 'class="bar"' in page
    assert "pigd" in page
    assert "<script" not in page


def test_history_has_every_event(address):
    text = run("budget", "history", address).stdout
    assert [text.count(kind) for kind in ("created", "opened", "charged")] == [1, 2, 1]
    events = [json.loads(line) for line in run("budget", "history", address, "--json").stdout.splitlines()]
    assert [event["kind"] for event in events] == ["created", "opened", "opened", "charged"]
    assert events[1]["content"]["settings"]


def test_verify_says_what_was_computed_again_and_what_not(address):
    done = run("budget", "verify", address)
    assert done.exit_code == 0
    assert "4 events, 2 of 3 costs were computed again, and agree" in done.stdout
    assert "no settings were recorded" in done.stdout


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE events SET who = 'nobody' WHERE number = 2", "event 2 was changed"),
        ("DELETE FROM events WHERE number = 2", "event 2 is missing"),
        ("DELETE FROM events WHERE number = 4", "has 3 events, and not the 4 that the ledger counted"),
        ("UPDATE events SET content = '{}' WHERE number = 2", "event 2 cannot be read"),
        ("UPDATE events SET content = 'no' WHERE number = 2", "event 2 cannot be read"),
        ("UPDATE lines SET reserved = spent", "and the ledger has"),
        ("DELETE FROM lines", "is not in the ledger any more"),
        ("UPDATE ledgers SET epsilon = '0x1p+3'", "was created for epsilon, delta and unit (1.0"),
    ],
)
def test_an_edited_ledger_is_a_fault_and_exit_1(address, statement, fault):
    """And the other commands still show what there is."""
    edit(address, statement)
    done = run("budget", "verify", address)
    assert done.exit_code == 1
    assert fault in " ".join(done.stdout.split())
    assert answer("budget", "verify", address)["ok"] is False
    assert run("budget", "history", address).exit_code == 0
    assert run("budget", "show", address).exit_code == 0


def test_a_history_that_was_rewritten_is_noticed_with_a_witness(tmp_path):
    """Without one, a consistent history of other events is in order."""
    path, witness = tmp_path / "b.db", tmp_path / "w.db"
    run("budget", "create", path, "--epsilon", 1, "--delta", "1e-6", "--witness", witness)
    with sqlite3.connect(path) as connection:
        [(place,)] = connection.execute("SELECT id FROM place").fetchall()
    connection.close()
    path.unlink()
    run("budget", "create", path, "--epsilon", 8, "--delta", "1e-6")
    edit(path, f"UPDATE place SET id = '{place}'")
    assert run("budget", "verify", path).exit_code == 0
    assert run("budget", "verify", path, "--witness", witness).exit_code == 1


def test_a_copy_can_be_looked_at_and_not_used(address, tmp_path):
    copy = tmp_path / "copy.db"
    shutil.copy(address, copy)
    done = run("budget", "show", copy)
    assert "customers" in done.stdout
    assert "moved, copied or restored" in done.stderr
    with pytest.raises(StateConflict, match="confirm-moved"):
        Ledger(copy)


def test_a_rejection_tells_what_is_left(address):
    with pytest.raises(BudgetExhausted, match=r"epsilon = .* is left"):
        pigd(PROBLEM, Privacy(0.9, 1e-6), horizon=10).start(Ledger(address))


def test_close_needs_the_beginning_of_one_name(address):
    lineage = next(name for name in Ledger(address).lines if "one-off" not in name)
    unknown = run("budget", "close", address, "zzz").exception
    assert isinstance(unknown, InvalidInput)
    assert "no stream's id" in str(unknown)
    assert "several" in str(run("budget", "close", address, "").exception)
    assert "is closed" in run("budget", "close", address, lineage[:12]).stdout
    ledger = Ledger(address)
    assert ledger.lines[lineage].closed
    assert ledger.history[-1].kind == "closed"
    assert run("budget", "verify", address).exit_code == 0


def test_several_ledgers_are_chosen_by_population(address):
    run("budget", "create", address, "--epsilon", 3, "--delta", "1e-6", "--population", "patients")
    assert "several ledgers: customers, patients" in str(run("budget", "show", address).exception)
    assert answer("budget", "show", address, "--population", "patients")["budget"]["epsilon"] == 3.0


@pytest.mark.parametrize("name", ["nowhere.db", "notes.txt", ".", "mysql://host/name"])
def test_a_wrong_address_is_one_sentence_and_exit_2(tmp_path, name):
    (tmp_path / "notes.txt").write_text("not a database, but long enough to be read as one " * 50)
    done = subprocess.run(
        [sys.executable, "-m", "taciturn", "budget", "show", name],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("taciturn: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_wrong_witness_is_an_error_and_not_a_new_file(address, tmp_path):
    assert run("budget", "show", address, "--witness", tmp_path / "typo.db").exception is not None
    assert not (tmp_path / "typo.db").exists()


def test_streams_are_told_apart_by_name_and_those_that_have_ended_by_state(address, tmp_path):
    """A fit that has released all that it can is finished; a stream of a store is called by its name."""
    ledger, store = Ledger(address), Store(tmp_path / "store.db")
    problem = Problem(Logistic(), L2Ball(1.0), 2, ridge=0.5)
    fit = pigd(problem, Privacy(0.05, 1e-7), 2)
    fit.fit([[0.6, 0.8], [1.0, 0.0]], [1, -1], ledger)
    half = pigd(problem, Privacy(0.05, 1e-7), 3)
    half.run(half.start(ledger), [[0.6, 0.8]], [1])
    for name, label in (("clicks", None), ("stream", "visits")):
        state = fit.start()
        store.create(
            name,
            lineage=state.lineage,
            position=state.position,
            reserved=fit.calibrated.cost(None),
            ledger=ledger,
            settings=fit.recorded,
            label=label,
        )
    rows = answer("budget", "show", address)["streams"]
    assert [row["name"] for row in rows][-4:] == [None, None, "clicks", "visits"]
    assert [row["finished"] for row in rows][-4:] == [True, False, False, False]
    text = run("budget", "show", address).stdout
    for word in ("clicks", "visits", "finished", "open"):
        assert word in text


def test_a_copy_is_flagged_in_json(address, tmp_path):
    shutil.copy(address, tmp_path / "copy.db")
    for name, moved in ((address, False), (tmp_path / "copy.db", True)):
        for command in ("budget", "verify"), ("store", "show"):
            data = answer(*command, name)
            assert data["moved"] == moved
            assert (data["warning"] is not None) == moved


def test_the_witness_is_told_when_a_ledger_is_created(tmp_path):
    create = ["budget", "create", "--epsilon", "1", "--delta", "1e-6"]
    assert "add --witness" in run(*create, tmp_path / "one.db").stdout
    made = run(*create, tmp_path / "two.db", "--witness", tmp_path / "witness.db")
    assert "it remembers" in made.stdout
    assert "the witness is on the same disk" in made.stderr


# Ledgers that renew.


@pytest.fixture
def monthly(tmp_path):
    """A ledger that renews, with a stream that is open, a fit, and one that was closed."""
    path = tmp_path / "monthly.db"
    done = run("budget", "create", path, "--epsilon", 1, "--delta", "1e-6", "--unit", "user and month", "--renews")
    assert "for one user and month, and renews" in done.stdout
    ledger, small = Ledger(path), Privacy(0.3, 1e-6)
    unit = User(rows=1, period="month")
    pftrl(PROBLEM, small, horizon=1000, unit=unit).start(ledger)
    pftrl(PROBLEM, small, horizon=1, unit=unit).fit([[0.6, 0.8]], [1], ledger, users=[1])
    ledger.close(pftrl(PROBLEM, small, horizon=9, unit=unit).start(ledger).lineage)
    return path


def test_show_states_periods_and_what_a_year_costs(monthly):
    ledger = Ledger(monthly)
    data = answer("budget", "show", monthly)
    a_year, _ = ledger.user_over(12)
    (name,) = ledger.by_period()
    assert (data["renews"], data["period"], list(data["periods"])) == (True, name, [name])
    assert data["periods"][name]["epsilon"] == ledger.reserved.epsilon(1e-6) == data["reserved"]["epsilon"]
    assert data["left"]["epsilon"] == pytest.approx(ledger.left)
    assert data["year"]["periods"] == 12
    assert data["year"]["cost"]["mu"] == a_year.mu > 5 * Privacy(0.3, 1e-6).mu
    assert [row["counts"] for row in data["streams"]] == [True] * 3
    text = run("budget", "show", monthly).stdout
    assert "per user and month, replace, renews" in text
    assert "for a user with rows in 12 months" in " ".join(text.split())
    for word in (name, "open, counts", "finished, counts", "closed, counts"):
        assert word in text
    page = monthly.with_suffix(".html")
    run("budget", "show", monthly, "--html", page)
    assert "with rows in 12 months" in tags_of(page)
    assert run("budget", "verify", monthly).exit_code == 0
    history = run("budget", "history", monthly).stdout
    assert "renews every month" in history
    assert f"counts up to {name}" in history


def tags_of(page):
    text = page.read_text(encoding="utf-8")
    tags(text)
    return text


def test_a_year_of_a_stream_whose_ranges_are_found_is_known(monthly):
    unit = User(1, period="month")
    problem = Problem(Logistic(), L2Ball(40.0), dimension=2)
    settings = {"horizon": 50_000, "unit": unit, "ranges": "private"}
    private = recommend(problem, Privacy(0.1, 1e-6), **settings).private
    before, _ = Ledger(monthly).user_over(12)
    private.start(Ledger(monthly))
    cost, unknown = Ledger(monthly).user_over(12)
    assert unknown == []
    assert cost.mu_squared == pytest.approx(before.mu_squared + private.user_over(12).mu_squared, rel=1e-9)
    checked = answer("budget", "verify", monthly)
    assert checked["ok"]
    assert not [reason for reason in checked["not_recomputed"] if "array" in reason]


def test_what_is_not_known_of_a_year_is_named(monthly):
    Ledger(monthly).reserve("f" * 32, Cost(rho=1e-6), unit="user and month")
    assert answer("budget", "show", monthly)["year"]["not_known"] == ["f" * 32]
    assert "what ffffffff adds is not known" in " ".join(run("budget", "show", monthly).stdout.split())


def test_a_ledger_that_does_not_renew_has_no_periods(address):
    data = answer("budget", "show", address)
    assert data["renews"] is False
    assert "periods" not in data
    assert "year" not in data


def test_closing_says_up_to_when_it_counts(monthly):
    lineage = next(name for name, line in Ledger(monthly).lines.items() if not (line.closed or line.finished))
    assert "counts up to the period of its last row" in run("budget", "close", monthly, lineage).stdout


def test_renewal_needs_a_period(tmp_path):
    done = run("budget", "create", tmp_path / "a.db", "--epsilon", 1, "--delta", "1e-6", "--renews")
    assert "only the budget of a period renews" in str(done.exception)
