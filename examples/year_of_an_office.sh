#!/usr/bin/env bash
# A year of an office: twelve tables, two models, a run that a laboratory made with Opacus, one crash, one refusal.
# Run it in an empty folder with deniable[all] installed: bash year_of_an_office.sh
set -euo pipefail
python "$(dirname "$0")/people.py" people.csv
cat > schema.toml <<'TOML'
[columns.town]
categories = ["North", "South", "East", "West"]
[columns.smoker]
categories = ["no", "yes"]
[columns.ill]
categories = ["no", "yes"]
TOML
# what the laboratory kept of its accountant: noise multiplier, sampling rate, steps
echo '[[2.0, 0.005, 1000]]' > laboratory.json

deniable ledger new people.ledger --advantage 0.25 --reserve 'dpsgd,2,0.005,1000 + epsilon,0,1e-5'

for month in 01 02 03 04 05 06 07 08 09 10 11 12; do
    deniable publish people.csv --statistic 'count() by town, ill' --schema schema.toml --advantage 0.02 \
        --out "table-$month.csv" --certificate "table-$month.json" --ledger people.ledger > /dev/null
done
deniable train people.csv --target ill --schema schema.toml --drop income --advantage 0.08 --ledger people.ledger > /dev/null
deniable train people.csv --target smoker --schema schema.toml --advantage 0.08 --ledger people.ledger > /dev/null
deniable ledger add people.ledger laboratory.json --name 'risk model of the laboratory' --purpose 'study of 2026'

# a machine that loses power after the entry: the budget is spent, and nothing was released
touch before
deniable publish people.csv --statistic 'mean(age) by town' --schema schema.toml --advantage 0.02 --ledger people.ledger > /dev/null &
until [ people.ledger -nt before ] && [ ! -e people.ledger-journal ]; do  # SQLite commits by deleting the journal
    sleep 0.01; done
kill -9 $!
wait $! || echo 'killed: its entry stays'

# one too many
deniable train people.csv --target ill --advantage 0.25 --ledger people.ledger || echo 'refused: nothing was released'

deniable ledger show people.ledger
deniable ledger remaining people.ledger --advantage 0.05
deniable ledger verify people.ledger
deniable ledger export people.ledger year.html
