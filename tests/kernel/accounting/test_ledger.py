"""The ledger in memory, beside what `taciturn.checks` demands of every ledger: races, re-entrance and interruptions."""

import contextlib
import os
import pickle
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interrupting import LEDGER, At, every_step, within
from taciturn import BudgetExhausted, Cost, Ledger, Privacy, StateConflict, Unprovable
from taciturn.accounting import memory_book
from taciturn.kernel.accounting import ledger_rules
from taciturn.kernel.accounting.cost import FREE, gaussian, total
from taciturn.store import Store
from taciturn.store.database import Database

BUDGET = Privacy(1.0, 1e-6)
HALF = gaussian(BUDGET.mu**2 / 2.0 * (1.0 - 1e-12))


def at(generation):
    """Where a state of that generation stands, in streams that learn one example and release one point a generation."""
    return generation, max(generation, 0), max(generation, 0), ""


@pytest.fixture
def eager_threads():
    """Threads that take turns as often as the interpreter lets them."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def race(*workers):
    """Start all workers at once; return what they raised."""
    raised, gate = [], threading.Barrier(len(workers))

    def enter(worker):
        gate.wait()
        try:
            worker()
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=enter, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_without_a_budget_everything_fits():
    """A ledger without a budget only keeps count."""
    ledger = Ledger()
    for name in "abc":
        ledger.open(name, gaussian(100.0))
    assert ledger.reserved.mu_squared == 300.0


@pytest.mark.privacy
@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.integers(1, 100)), min_size=1, max_size=6))
def test_costs_add_over_lineages(costs):
    """What the ledger has reserved and spent is the sum over its lineages, release by release."""
    ledger = Ledger()
    for name, (mu_squared, count) in enumerate(costs):
        ledger.open(str(name), gaussian(mu_squared, count))
        for generation in range(min(count, 5)):
            ledger.commit(str(name), at(generation), at(generation + 1), gaussian(mu_squared, generation + 1))
    assert ledger.reserved == total(gaussian(*cost) for cost in costs)
    assert ledger.spent == total(gaussian(mu, min(count, 5)) for mu, count in costs)


def test_opening_reserves_and_spends_nothing():
    """A fresh lineage has its whole cost reserved and nothing spent; a loaded one keeps what it had spent."""
    ledger = Ledger()
    ledger.open("fresh", gaussian(0.5))
    assert (ledger.reserved.mu_squared, ledger.spent.mu_squared) == (0.5, 0.0)
    ledger.open("loaded", gaussian(0.5), spent=gaussian(0.125), at=at(7))
    assert (ledger.reserved.mu_squared, ledger.spent.mu_squared) == (1.0, 0.125)
    ledger.commit("loaded", at(7), at(8), gaussian(0.25))
    assert ledger.spent.mu_squared == 0.25


def test_lineages_have_their_own_generations():
    """Using a generation of one stream does not use that of another."""
    ledger = Ledger()
    for name in ("first", "second"):
        ledger.open(name, gaussian(1.0))
        ledger.commit(name, at(0), at(1), gaussian(0.5))
    assert ledger.spent.mu_squared == 1.0


@pytest.mark.privacy
def test_of_racing_threads_one_wins(eager_threads):
    """Sixteen threads that use the same state: one release, fifteen refusals, generation after generation."""
    ledger = Ledger()
    ledger.open("stream", gaussian(1.0))
    for generation in range(20):
        refused = race(*[lambda g=generation: ledger.commit("stream", at(g), at(g + 1), gaussian(0.01, g + 1))] * 16)
        assert len(refused) == 15
        assert all(isinstance(error, StateConflict) for error in refused)
    assert ledger.spent == total([gaussian(0.01, 20)])


@pytest.mark.privacy
def test_racing_reservations_keep_the_budget(eager_threads):
    """Of sixteen threads that each reserve half of the budget, two succeed."""
    for _ in range(20):
        ledger = Ledger(BUDGET)
        refused = race(*[lambda name=name, to=ledger: to.open(str(name), HALF) for name in range(16)])
        assert len(refused) == 14
        assert all(isinstance(error, BudgetExhausted) for error in refused)
        assert ledger.reserved.within(BUDGET)


class Slow(Cost):
    """A cost that takes its time to be read, while another thread opens a stream."""

    ledger = None

    def __getattribute__(self, name):
        if name == "mu_squared" and Slow.ledger is not None:
            ledger, Slow.ledger = Slow.ledger, None
            meanwhile = threading.Thread(target=ledger.open, args=("meanwhile", FREE))
            meanwhile.start()
            meanwhile.join(timeout=0.2)
        return super().__getattribute__(name)


def test_reading_while_opening():
    """A ledger can be read while another thread opens a stream in it."""
    ledger = Ledger()
    for name in ("first", "second"):
        ledger.open(name, Slow(1.0), spent=Slow(0.5))
    Slow.ledger = ledger
    assert ledger.spent.mu_squared == 1.0


def test_generations_may_skip():
    """A call that uses several generations at once commits them together; none of them can be used again."""
    ledger = Ledger()
    ledger.open("stream", gaussian(1.0))
    ledger.commit("stream", at(0), at(7), gaussian(0.5))
    for generation in range(7):
        with pytest.raises(StateConflict):
            ledger.commit("stream", at(generation), at(generation + 1), gaussian(0.6))
    ledger.commit("stream", at(7), at(8), gaussian(0.6))
    assert ledger.spent.mu_squared == 0.6


@pytest.mark.privacy
def test_plain_charges_add_their_epsilons():
    """Whatever the Gaussian part costs: three tenths fit a budget of .35, four do not."""
    ledger = Ledger(Privacy(0.35, 1e-6))
    for _ in range(3):
        ledger.charge(Cost(plain_epsilon=0.1, plain_delta=1e-7))
    assert ledger.spent.epsilon(1e-6) == pytest.approx(0.3)
    with pytest.raises(BudgetExhausted, match=r"would have epsilon = 0\.4"):
        ledger.charge(Cost(plain_epsilon=0.1, plain_delta=1e-7))


@pytest.mark.privacy
def test_racing_charges_keep_the_budget(eager_threads):
    """Of sixteen threads that each charge half of the budget, two succeed."""
    for _ in range(20):
        ledger = Ledger(BUDGET)
        refused = race(*[lambda to=ledger: to.charge(HALF)] * 16)
        assert len(refused) == 14
        assert ledger.spent == ledger.reserved == total([HALF, HALF])


def test_a_charge_takes_no_name():
    """A stream of any name beside it keeps its own cost."""
    ledger = Ledger()
    for name in ("charge 0", "charge 1", "charge 2"):
        ledger.open(name, HALF)
        ledger.charge(HALF)
    assert ledger.spent == total([HALF] * 3)
    assert ledger.reserved == total([HALF] * 6)


def test_closing_twice_is_one_event():
    """Also if the first call was interrupted before it recorded the event."""

    def attempt(step):
        ledger = Ledger(BUDGET)
        ledger.open("stream", HALF)
        with contextlib.suppress(KeyboardInterrupt), At(step, LEDGER, interrupt) as interruption:
            ledger.close("stream")
        ledger.close("stream")
        assert [event.kind for event in ledger.history] == ["opened", "closed"]
        assert ledger.lines["stream"].closed
        assert ledger.verify().ok
        return interruption.reached

    every_step(attempt, least=30)


def test_what_it_prints():
    """The repr shows both totals as epsilon at the budget's delta, and then as mu."""
    ledger = Ledger(BUDGET)
    ledger.open("stream", gaussian(0.04))
    assert repr(ledger) == (
        "Ledger(people: reserved epsilon = 0.8342 of 1 at delta = 1e-06 (mu = 0.2), spent epsilon = 0 (mu = 0))"
    )


@pytest.mark.privacy
def test_a_ledger_in_memory_is_not_pickled():
    """Another process would spend the same budget again; the error says what to do."""
    with pytest.raises(StateConflict, match=r"Ledger\.create"):
        pickle.dumps(Ledger(BUDGET))


# A check and the change that it allows are one step: nothing on the same thread comes between them.


class Calling(Cost):
    """A cost that calls back, once, when it is read."""

    then = None

    def __getattribute__(self, name):
        then, Calling.then = Calling.then, None
        if then is not None:
            then()
        return super().__getattribute__(name)


@pytest.mark.privacy
def test_a_commit_within_a_commit_uses_the_state_up():
    """The inner one wins; the outer one is rejected, and nothing of it is recorded."""
    ledger, cost, following = Ledger(), Calling(0.5), (1, 1, 1, "inner")
    ledger.open("stream", gaussian(1.0))
    Calling.then = lambda: ledger.commit("stream", at(0), following, gaussian(0.25))
    with pytest.raises(StateConflict, match="not its live state"):
        ledger.commit("stream", at(0), (1, 1, 1, "outer"), cost)
    assert ledger.spent == gaussian(0.25)
    ledger.commit("stream", following, at(2), gaussian(0.5))


@pytest.mark.privacy
@pytest.mark.parametrize("inner", ["open", "charge"])
@pytest.mark.parametrize("outer", ["open", "charge"])
def test_reservations_within_a_reservation_keep_the_budget(inner, outer):
    """What is reserved while a reservation is being checked counts in it."""
    ledger, cost = Ledger(BUDGET), Calling(BUDGET.mu**2 * 0.9)

    def reserve(how, name, cost):
        ledger.open(name, cost) if how == "open" else ledger.charge(cost)

    Calling.then = lambda: reserve(inner, "inner", gaussian(BUDGET.mu**2 * 0.8))
    with pytest.raises(BudgetExhausted, match="all streams together would have"):
        reserve(outer, "outer", cost)
    assert ledger.reserved == gaussian(BUDGET.mu**2 * 0.8)
    assert ledger.spent == (ledger.reserved if inner == "charge" else FREE)


@pytest.mark.privacy
@pytest.mark.parametrize("outer", ["open", "charge"])
def test_a_relation_settled_within_a_reservation_holds_for_it(outer):
    ledger, cost = Ledger(), Calling(0.5)
    Calling.then = lambda: ledger.charge(HALF, "zero-out")
    with pytest.raises(Unprovable, match="they do not add"):
        ledger.open("stream", cost) if outer == "open" else ledger.charge(cost)
    assert (ledger.neighbours, ledger.reserved) == ("zero-out", HALF)


def test_a_stream_opened_within_its_opening_is_charged_once():
    ledger, cost = Ledger(BUDGET), Calling(HALF.mu_squared)
    Calling.then = lambda: ledger.open("stream", cost)
    ledger.open("stream", cost)
    assert ledger.reserved == HALF


@pytest.mark.privacy
@pytest.mark.parametrize("how", ["open", "charge", "commit"])
def test_a_child_forked_in_the_middle_is_rejected(monkeypatch, how):
    """By a signal handler, say: what the child then does in its copy of the ledger is not what its parent records."""
    ledger, cost = Ledger(), Calling(0.5)
    ledger.open("stream", gaussian(1.0))
    Calling.then = lambda: monkeypatch.setattr(memory_book, "process_number", lambda: os.getpid() + 1)
    work = {
        "open": lambda: ledger.open("another", cost),
        "charge": lambda: ledger.charge(cost),
        "commit": lambda: ledger.commit("stream", at(0), at(1), cost),
    }[how]
    with pytest.raises(StateConflict, match="forked child"):
        work()


def attempted(work):
    """Whether it was not rejected."""
    with contextlib.suppress(BudgetExhausted, StateConflict):
        work()
        return True
    return False


@pytest.mark.privacy
def test_wherever_a_commit_is_entered_again_one_wins():
    """At every bytecode of the ledger."""

    def attempt(step):
        ledger, won = Ledger(), []
        ledger.open("stream", gaussian(1.0))

        def commit(name):
            if attempted(lambda: ledger.commit("stream", at(0), (1, 1, 1, name), gaussian(0.5))):
                won.append(name)

        with At(step, LEDGER, lambda: commit("inner")) as inner:
            commit("outer")
        assert len(won) == 1
        ledger.commit("stream", (1, 1, 1, won[0]), at(2), gaussian(0.5))
        return inner.reached

    every_step(attempt, least=30)


@pytest.mark.privacy
@pytest.mark.parametrize("inner", ["open", "charge"])
@pytest.mark.parametrize("outer", ["open", "charge"])
def test_wherever_a_reservation_is_entered_again_the_budget_is_kept(inner, outer):
    """At every bytecode of the ledger: of three that each want half of it two get it."""

    def attempt(step):
        ledger, won = Ledger(BUDGET), []

        def reserve(how, name):
            work = (lambda: ledger.open(name, HALF)) if how == "open" else (lambda: ledger.charge(HALF))
            if attempted(work):
                won.append(how)

        reserve(inner, "before")
        with At(step, LEDGER, lambda: reserve(inner, "inner")) as entered:
            reserve(outer, "outer")
        if entered.reached:
            assert len(won) == 2
        assert ledger.reserved == total([HALF] * len(won))
        assert ledger.spent == total([HALF] * won.count("charge"))
        return entered.reached

    every_step(attempt, least=30)


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.privacy
def test_wherever_a_commit_is_interrupted_it_was_made_or_not():
    """At every bytecode of the ledger: one of two states is live, for other threads too, and the cost is that one's."""

    def attempt(step):
        ledger = Ledger()
        ledger.open("stream", gaussian(1.0))
        with contextlib.suppress(KeyboardInterrupt), At(step, LEDGER, interrupt) as interruption:
            ledger.commit("stream", at(0), at(1), gaussian(0.25))

        def go_on():
            made = ledger.spent == gaussian(0.25)
            assert made or ledger.spent == FREE
            assert not attempted(lambda: ledger.commit("stream", at(1 - made), at(3), gaussian(0.5)))
            ledger.commit("stream", at(int(made)), at(2), gaussian(0.5))
            assert ledger.spent == gaussian(0.5)

        within(5.0, go_on)
        return interruption.reached

    every_step(attempt, least=30)


@pytest.mark.privacy
@pytest.mark.parametrize("how", ["open", "charge"])
def test_wherever_a_reservation_is_interrupted_it_was_made_or_not(how):
    """At every bytecode of the ledger: all of it, relation and stream, or nothing, and other threads go on."""

    def attempt(step):
        ledger = Ledger(BUDGET)
        with contextlib.suppress(KeyboardInterrupt), At(step, LEDGER, interrupt) as interruption:
            ledger.open("stream", HALF, "zero-out") if how == "open" else ledger.charge(HALF, "zero-out")

        def go_on():
            made = ledger.reserved == HALF
            assert made or (ledger.reserved, ledger.neighbours) == (FREE, None)
            assert attempted(lambda: ledger.commit("stream", at(0), at(1), HALF)) == (made and how == "open")
            assert ledger.spent == (HALF if made else FREE)
            ledger.open("another", HALF, "zero-out" if made else "replace")
            assert attempted(lambda: ledger.charge(HALF, ledger.neighbours)) == (not made)

        within(5.0, go_on)
        return interruption.reached

    every_step(attempt, least=30)


def test_a_rejection_compares_epsilon_with_epsilon(tmp_path, monkeypatch):
    """At the ledger's delta; and its sentence is made when no lock is held any more."""
    open_now = []
    transaction, mu = Database.transaction, ledger_rules.largest_mu

    @contextlib.contextmanager
    def counted(self, *given, **named):
        with transaction(self, *given, **named) as now:
            open_now.append(1)
            try:
                yield now
            finally:
                open_now.pop()

    def unlocked(*given):
        assert not open_now
        return mu(*given)

    monkeypatch.setattr(Database, "transaction", counted)
    monkeypatch.setattr(ledger_rules, "largest_mu", unlocked)
    budget = Privacy(1.0, 1e-6)
    for ledger in (Ledger(budget), Ledger.create(tmp_path / "budget.db", budget)):
        ledger.open("first", gaussian(0.04))
        with pytest.raises(BudgetExhausted) as caught:
            ledger.open("second", gaussian(0.04))
        assert type(caught.value) is BudgetExhausted
        assert "epsilon = 0.8342 at delta = 1e-06, and epsilon = 0.5107 of the ledger's 1 is left" in str(caught.value)
        assert "mu" not in str(caught.value)
    store, ledger = Store(tmp_path / "budget.db"), Ledger(tmp_path / "budget.db")
    with pytest.raises(BudgetExhausted, match=r"epsilon = 0\.5107"):
        store.create("third", lineage="third", position=(0, 0, 0, "0"), reserved=gaussian(0.04), ledger=ledger)
