"""One ledger for all fronts: scikit-learn, river and the library spend one budget, in any process."""

import copy
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

from taciturn import (
    BudgetExhausted,
    L2Ball,
    Ledger,
    Logistic,
    ObjectivePerturbation,
    Privacy,
    Problem,
    StateConflict,
    WholeSpace,
    pigd,
)

pytest.importorskip("sklearn")
pytest.importorskip("river")

from joblib.externals.loky import get_reusable_executor
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from taciturn.estimators import river, sklearn

rng = np.random.default_rng(0)
X = rng.uniform(-0.5, 0.5, size=(60, 3))
y = np.where(X[:, 0] > 0.0, "yes", "no")
pytestmark = pytest.mark.filterwarnings("ignore::taciturn.estimators.stream.PrivacyWarning")


@pytest.fixture
def address(tmp_path):
    path = str(tmp_path / "budget.db")
    Ledger.create(path, Privacy(2.0, 1e-5), population="customers")
    return path


def classifier(ledger, epsilon=1.0, **more):
    settings = {"feature_bound": 1.0, "classes": ["no", "yes"], "horizon": 60}
    return sklearn.PrivateLogisticRegression(epsilon=epsilon, ledger=ledger, **(settings | more))


def online(ledger):
    return river.PrivateLogisticRegression(
        features=["a", "b", "c"], classes=["no", "yes"], epsilon=1.0, feature_bound=1.0, horizon=60, ledger=ledger
    )


@pytest.mark.privacy
def test_all_fronts_spend_one_budget(address):
    """Each reserves its own cost before it learns, and what does not fit is rejected with what is left."""
    classifier(address, epsilon=0.3).fit(X, y)
    model = online(address)
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        model.learn_one(dict(zip("abc", row, strict=True)), label)
    assert model.n_releases > 0  # reading it learns from the buffered rows
    problem = Problem(Logistic(), L2Ball(1.0), dimension=3, ridge=0.1)
    pigd(problem, Privacy(0.5, 1e-6), horizon=60).start(address)
    offline = Problem(Logistic(), WholeSpace(), dimension=3, ridge=1.0)
    ObjectivePerturbation(offline, Privacy(0.3, 1e-6), horizon=60).fit(X, np.sign(X[:, 0]), address)
    ledger = Ledger(address)
    assert [event.kind for event in ledger.history] == ["created", "opened", "opened", "opened", "opened"]
    assert ledger.verify().ok
    assert ledger.verify().checked == 4
    with pytest.raises(BudgetExhausted, match=r"is left"):
        classifier(address, epsilon=1.5).fit(X, y)
    assert len(ledger.lines) == 4


@pytest.mark.privacy
def test_a_rejected_fit_leaves_the_estimator_unfitted(address):
    """Nothing is learnt or reserved by a model that does not fit the budget."""
    model = classifier(address, epsilon=3.0)
    with pytest.raises(BudgetExhausted):
        model.partial_fit(X, y)
    assert not model.__sklearn_is_fitted__()
    assert Ledger(address).lines == {}
    model.set_params(epsilon=1.0).partial_fit(X, y)
    assert len(Ledger(address).lines) == 1


@pytest.mark.privacy
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_search_is_charged_for_every_fit(address, jobs):
    """Clones and pickled copies share the ledger: the fits that fit the budget succeed, and the others fail."""
    search = GridSearchCV(
        classifier(address, horizon=None),
        {"radius": [1.0, 10.0, 40.0]},
        cv=2,
        refit=False,
        n_jobs=jobs,
        error_score=np.nan,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, y)
    get_reusable_executor().shutdown(wait=True)  # its processes would end during another test
    assert np.isnan(search.cv_results_["mean_test_score"]).any()
    ledger = Ledger(address)
    assert 0 < len(ledger.lines) < 6
    assert ledger.reserved.within(Privacy(2.0, 1e-5))


def test_copies_share_the_ledger(address):
    """A clone has the same ledger, in memory too; a pickled model has its address; in memory there is none."""
    shared = Ledger(Privacy(2.0, 1e-5))
    for model in (classifier(shared), online(shared)):
        twin = clone(model) if isinstance(model, sklearn.PrivateLogisticRegression) else model.clone()
        assert twin.ledger is shared
        assert copy.deepcopy(model).ledger is shared
        with pytest.raises(StateConflict, match=r"Ledger\.create"):
            pickle.dumps(model)
    fitted = classifier(Ledger(address)).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.ledger.same_as(fitted.ledger)
    assert np.array_equal(again.coef_, fitted.coef_)


ELSEWHERE = """
import sys
from taciturn import StateConflict
import numpy as np, pickle
model = pickle.loads(open(sys.argv[1], "rb").read())
try:
    model.load_stream(sys.argv[2])
    model.partial_fit(np.zeros((5, 3)), ["no"] * 5)
    print("learnt")
except StateConflict as error:
    print("rejected", error)
"""


@pytest.mark.privacy
def test_a_saved_stream_goes_on_once(address, tmp_path):
    """A checkpoint loaded in two processes: the first to learn goes on, and the second is rejected."""
    model = classifier(address)
    model.partial_fit(X[:20], y[:20])
    model.dump_stream(tmp_path / "stream.npz")
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", ELSEWHERE, tmp_path / "model.pkl", tmp_path / "stream.npz"]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout for _ in range(2)
    )
    assert first.strip() == "learnt"
    assert second.startswith("rejected")
    with pytest.raises(StateConflict, match="not its live state"):
        model.partial_fit(X[20:40], y[20:40])


@pytest.mark.privacy
def test_river_is_rejected_at_the_first_row(address):
    """A model that does not fit is rejected when its first row comes, and its attributes can still be read."""
    model = online(address)
    model.epsilon = 3.0
    with pytest.raises(BudgetExhausted):
        model.learn_one({"a": 0.1}, "yes")
    assert model.n_examples == 0
    assert Ledger(address).lines == {}
    model = online(address)
    model.learn_one({"a": 0.1}, "yes")
    assert len(Ledger(address).lines) == 1
