"""From river's LogisticRegression to a private one: the same verbs, the same pipeline, one guarantee.

Run it: python examples/from_river.py
"""

from river import evaluate, linear_model, metrics, preprocessing

from taciturn.datasets import ad_impressions
from taciturn.estimators import river as private

impressions = ad_impressions(30_000, seed=1)
stream = [
    (dict(zip(impressions.names, row, strict=True)), label > 0)
    for row, label in zip(impressions.X.tolist(), impressions.y, strict=True)
]

# Before: the scaler computes running means of the data, and the model depends on every example.
before = preprocessing.StandardScaler() | linear_model.LogisticRegression()

# After, line by line:
# - StandardScaler publishes statistics of the stream; PublicScaler uses public ranges.
# - features: the names are stated; a name that occurs in one example only would reveal that example.
# - epsilon, delta, feature_bound, horizon: the budget of all models together, and the public bounds that it needs.
scaler = private.PublicScaler(ranges=dict.fromkeys(impressions.names, (-1.0, 1.0)))
after = scaler | private.PrivateLogisticRegression(
    features=impressions.names,
    epsilon=1.0,
    delta=1e-6,
    feature_bound=1.0,
    horizon=len(stream),
)

for name, pipeline in (("river", before), ("taciturn", after)):
    accuracy = evaluate.progressive_val_score(stream, pipeline, metrics.Accuracy())
    print(f"{name}: {accuracy} (progressive; a measure of this example, not private)")

model = after["PrivateLogisticRegression"]
print(f"{model.n_releases} models were published; spent: epsilon = {model.privacy_spent.epsilon:.3f}")
print(model.guarantee)
