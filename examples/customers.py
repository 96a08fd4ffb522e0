"""From a messy CSV file to a checked private model: contract, dry run, learning, predictions; then with scikit-learn.

Run it: python examples/customers.py  (200,000 simulated rows; --rows 80000 for fewer; files are written here)
"""

import argparse
import subprocess
import sys
import tomllib
from pathlib import Path

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from taciturn.datasets import customers
from taciturn.estimators.scaling import PublicColumns
from taciturn.estimators.sklearn import PrivateLinearRegression, PrivateLogisticRegression

parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, default=200_000)
n = parser.parse_args().rows * 4 // 5  # learnt; the others are new rows


def taciturn(*words):
    """What you would type at a shell."""
    print("$ taciturn", *words, flush=True)
    subprocess.run([sys.executable, "-m", "taciturn", *words], check=True)


table = customers(n * 5 // 4, as_frame=True)
table[:n].to_csv("customers.csv", index=False)
table[n:].to_csv("new.csv", index=False)

# Nothing below was read off the data: ranges, categories and dates are public knowledge about the business.
stated = ["--range=age=18:99", "--range=visits=0:60", "--range=tickets=0:20", "--ignore=spend_next_year"]
stated += ["--categories=country=DE,FR,NL,PL,other", "--categories=plan=free,basic,plus"]
whom = ["--user=customer_id", "--rows-per-user=4", "--epsilon=1", f"--horizon={n}"]
taciturn("init", "customers.csv", "--force", "--yes", "--target=churned", "--positive=yes", *whom, *stated)
contract = Path("taciturn.toml")
text = contract.read_text().replace('signed_up = "?"', 'signed_up = { date = ["2018-01-01", "2025-12-31"] }')
text = text.replace('income = "?"', 'income = { range = [0, 1e6], scale = "symlog", threshold = 1000 }')
contract.write_text(text.replace('note = "?"', "note = { text = { hash = 64 } }"))
taciturn("check", "taciturn.toml")  # the guarantee, and from which row on models are of use; reads none
taciturn("check", "taciturn.toml", "customers.csv")  # a dry run for the operator: not private
taciturn("learn", "taciturn.toml", "customers.csv", "--out=churn", "--bad-rows=zero")
taciturn("predict", "churn/model.json", "new.csv", "--keep=customer_id", "--out=predictions.csv")

columns = tomllib.loads(contract.read_text())["columns"]
X, X_new, owners = table[list(columns)][:n], table[list(columns)][n:], table["customer_id"][:n]
churn = PrivateLogisticRegression(epsilon=1.0, columns=columns, classes=["no", "yes"], rows_per_user=4)
churn.fit(X, table["churned"][:n], users=owners)
spend = PrivateLinearRegression(epsilon=1.0, columns=columns, label_range=(0, 1e5), rows_per_user=4)
spend.fit(X, table["spend_next_year"][:n], users=owners)
reference = make_pipeline(PublicColumns(columns), LogisticRegression(max_iter=500)).fit(X, table["churned"][:n])
print(f"\nNot private: accuracy {churn.score(X_new, table['churned'][n:]):.1%}", end="; ")
print(f"without privacy {reference.score(X_new, table['churned'][n:]):.1%}", end="; ")
print(f"R² of the spend {spend.score(X_new, table['spend_next_year'][n:]):.2f}\n{churn.guarantee_}")
