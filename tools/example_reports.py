"""Write the four example reports of the documentation: ``python tools/example_reports.py``.

A DP-SGD run that misses the default policy, a private model and statistics of a table that meet it, and an
ordinary model about which nothing is proven. Invented people, and data that come with scikit-learn; a seed fixes
the attack, never released noise.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

import deniable as dn
from deniable.workflows.train import train_table

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "_static" / "reports"


def main() -> None:
    """Write the pages into docs/_static/reports."""
    FOLDER.mkdir(exist_ok=True)
    dn.assess(dn.SubsampledGaussian(1.0, 0.01, 5000), prior=0.1).to_html(FOLDER / "run.html")
    with TemporaryDirectory() as folder:
        table = Path(folder) / "people.csv"
        subprocess.run([sys.executable, ROOT / "examples" / "people.py", table], check=True)
        train_table(table, target="ill", advantage=0.1).assessment.to_html(FOLDER / "private_model.html")
        asked = ["count() by town, ill", "mean(income) by ill", "median(age)"]
        dn.assess(dn.release_statistics(table, asked, advantage=0.1)).to_html(FOLDER / "statistics.html")
    X, y = load_breast_cancer(return_X_y=True)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    dn.assess(model, X, y, n_shadows=32, rng=0).to_html(FOLDER / "ordinary_model.html")


if __name__ == "__main__":
    main()
