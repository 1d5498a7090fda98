"""Fit a model that says next to nothing about who was in the table, and write the page for the privacy officer."""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import deniable as dn

X, y = load_breast_cancer(return_X_y=True, as_frame=True)  # your table: pandas.read_csv("people.csv"), one column as y
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)

model = dn.PrivateClassifier(advantage=0.1).fit(X_train, y_train)
print(model.certificate_)
print(f"held-out accuracy {model.score(X_test, y_test):.1%}")
print(f"members found at a false positive rate of 0.1 %: at most {model.tradeoff_.tpr(1e-3):.2%}")
dn.assess(model).to_html("private_model.html")
print("wrote private_model.html")
