"""From scikit-learn's SGDClassifier to a private model: what changes, and what it costs.

Run it: python examples/from_sgd_classifier.py
"""

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from taciturn.estimators.scaling import PublicScaler
from taciturn.estimators.sklearn import PrivateLogisticRegression

rng = np.random.default_rng(0)
age, hours, income = rng.uniform(18, 90, 60_000), rng.uniform(0, 80, 60_000), rng.gamma(3.0, 15_000.0, 60_000)
X = np.column_stack([age, hours, income])
chance = 1.0 / (1.0 + np.exp(-(income - 40_000) / 10_000 + (age - 50) / 15 - (hours - 40) / 30))
y = (rng.random(len(chance)) < chance).astype(int)
train, test = slice(0, 50_000), slice(50_000, None)

# Before: the scaler computes means and standard deviations of the data, and the classifier depends on every example.
before = make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=0))
before.fit(X[train], y[train])

# After, line by line:
# - StandardScaler publishes statistics of the data; PublicScaler uses public ranges.
# - epsilon and delta are the budget of everything that the model publishes.
# - feature_bound: the norm of three numbers in [-1, 1] is at most sqrt(3).
# - classes: the set of labels is public, so it is stated.
# - there is no random_state: noise from a seed gives no privacy.
after = make_pipeline(
    PublicScaler([(18, 90), (0, 80), (0, 200_000)]),
    PrivateLogisticRegression(epsilon=1.0, delta=1e-6, feature_bound=3**0.5, classes=[0, 1]),
)
after.fit(X[train], y[train])

print(f"SGDClassifier              {before.score(X[test], y[test]):.1%}")
print(f"PrivateLogisticRegression  {after.score(X[test], y[test]):.1%}")
private = after[-1]
print(f"spent: epsilon = {private.privacy_spent_.epsilon:.3f} at delta = {private.privacy_spent_.delta:g}")
print(private.guarantee_)
