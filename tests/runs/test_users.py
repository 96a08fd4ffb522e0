"""Runs whose unit of privacy is a user: counts are committed with the state, in layers, encrypted like it."""

import json
from itertools import islice

import pytest
from typer.testing import CliRunner

from small_run import go, saved, shown, users_of, write_case
from taciturn import InvalidInput, Ledger, Privacy, StateConflict
from taciturn.cli.app import app
from taciturn.contract.contract import contract_of, read_contract
from taciturn.contract.explain import in_plain_words
from taciturn.contract.model_file import read_model
from taciturn.kernel.replay import record_of
from taciturn.kernel.stream.state import read_state
from taciturn.readers.rows import open_rows
from taciturn.store import Store

ROWS = 600


def records(place, key=None):
    store = Store(place / "stream.db", key=key)
    stored = store.load("stream")
    return read_state(stored.state, store.layers(stored)).users


def test_a_run_in_pieces_is_the_run_at_once(tmp_path):
    toml, data = write_case(tmp_path, ROWS, release="10", rows_per_user=2)
    declared = read_contract(toml)
    go(tmp_path / "whole", declared, open_rows(declared, data), seed=3)
    for again, blocks in ((False, 3), (True, 9), (True, None)):
        go(tmp_path / "parts", declared, islice(open_rows(declared, data, block=37), blocks), again=again, seed=3)
    assert shown(tmp_path / "parts") == shown(tmp_path / "whole")
    one, two = records(tmp_path / "parts"), records(tmp_path / "whole")
    assert all(record_of(one, user) == record_of(two, user) for user in set(users_of(ROWS)))


def test_a_commit_writes_the_layers_that_are_new(tmp_path):
    toml, data = write_case(tmp_path, ROWS, release="10", rows_per_user=2)
    declared = read_contract(toml)
    written = []
    with pytest.MonkeyPatch.context() as patch:
        insert = Store._insert_layer
        patch.setattr(Store, "_insert_layer", lambda *a: (written.append(len(a[4])), insert(*a)))
        go(tmp_path / "run", declared, open_rows(declared, data, block=10), seed=3)
    assert len(written) == ROWS // 10
    assert sum(written) < 12 * 48 * ROWS  # each record about as often as layers are merged, not in every commit
    assert saved(tmp_path / "run").layers == {layer.name for layer in records(tmp_path / "run").layers}


def test_another_id_is_another_row(tmp_path):
    toml, data = write_case(tmp_path, ROWS, release="10", rows_per_user=2)
    declared = read_contract(toml)
    go(tmp_path / "run", declared, islice(open_rows(declared, data, block=100), 2))
    lines = data.read_text().splitlines()
    lines[50] = lines[50].rsplit(",", 1)[0] + ",9999"
    data.write_text("\n".join(lines) + "\n")
    with pytest.raises(StateConflict, match="are not those that this run learnt from"):
        go(tmp_path / "run", declared, open_rows(declared, data), again=True)


def test_layers_are_encrypted_with_the_state_and_adopted_with_it(tmp_path):
    toml, data = write_case(tmp_path, ROWS, release="10", rows_per_user=2)
    keys = [tmp_path / "one.key", tmp_path / "two.key"]
    run = CliRunner().invoke
    for key in keys:
        assert run(app, ["store", "new-key", str(key)]).exit_code == 0
    made = run(app, ["learn", str(toml), str(data), "--out", str(tmp_path / "run"), "--key", str(keys[0])])
    assert made.exit_code == 0, made.output
    before = records(tmp_path / "run", keys[0])
    store = Store(tmp_path / "run" / "stream.db", key=keys[0])
    plain = [layer.to_bytes() for layer in before.layers]
    with store.database.transaction(write=False) as now:
        kept = [bytes(blob) for (blob,) in now.rows("SELECT content FROM layers")]
    assert kept
    assert not any(content[:64] in blob for content in plain for blob in kept)
    store.rotate_key(keys[1])
    after = records(tmp_path / "run", keys[1])
    assert [record_of(after, user) for user in users_of(9)] == [record_of(before, user) for user in users_of(9)]
    store = Store(tmp_path / "run" / "stream.db", key=keys[1])
    store.adopt("stream")
    adopted = records(tmp_path / "run", keys[1])
    assert [record_of(adopted, user) for user in users_of(9)] == [record_of(before, user) for user in users_of(9)]


def test_the_model_and_the_report_say_whose_data_is_protected(tmp_path):
    toml, data = write_case(tmp_path, ROWS, release="10", rows_per_user=2)
    made = CliRunner().invoke(app, ["learn", str(toml), str(data), "--out", str(tmp_path / "run")])
    assert made.exit_code == 0, made.output
    assert "all rows of any one user" in (tmp_path / "run" / "model.json").read_text()
    assert "one user, of at most 2 rows" in (tmp_path / "run" / "report.html").read_text()
    assert read_model(tmp_path / "run" / "model.json").contract.user == "who"
    predicted = CliRunner().invoke(app, ["predict", str(tmp_path / "run" / "model.json"), str(data)])
    assert predicted.exit_code == 0, predicted.output


class TestCheck:
    def test_what_users_are_promised(self, tmp_path):
        toml, data = write_case(tmp_path, ROWS, rows_per_user=2)
        of_users = json.loads(CliRunner().invoke(app, ["check", str(toml), str(data), "--json"]).stdout)["data"]
        assert of_users["not_private"]
        assert of_users["users"] == len(set(users_of(ROWS)))
        assert set(of_users["epsilon_promised"].values()) == {of_users["epsilon_promised"]["50%"]}
        toml.write_text(toml.read_text().replace("rows_per_user = 2\n", ""))
        of_rows = json.loads(CliRunner().invoke(app, ["check", str(toml), str(data), "--json"]).stdout)["data"]
        assert of_rows["epsilon_promised"]["100%"] > 5.0 > 1.0 >= of_users["epsilon_promised"]["100%"]
        assert of_users["rows_that_count"] < of_rows["rows_that_count"] == ROWS
        text = CliRunner().invoke(app, ["check", str(toml), str(data)]).stdout
        assert "NOT PRIVATE" in text
        assert "rows_per_user" in text

    def test_without_a_column_of_ids_it_says_so(self, tmp_path):
        toml, data = write_case(tmp_path, 50)
        assert "names no column" in CliRunner().invoke(app, ["check", str(toml), str(data)]).stdout


def test_a_run_with_months_counts_in_a_ledger_that_renews(tmp_path):
    """Until its horizon, of which the store tells its ledger; half-way it is interrupted."""
    toml, data = write_case(tmp_path, ROWS, release="100", rows_per_user=2)
    toml.write_text(toml.read_text().replace("rows_per_user = 2", 'rows_per_user = 2\nperiod = "month"'))
    ledger = Ledger.create(tmp_path / "budget.db", Privacy(2.0, 1e-5), unit="user and month", renews=True)
    lines = data.read_text().splitlines()
    data.write_text("\n".join(lines[: ROWS // 2]) + "\n")
    command = ["learn", str(toml), str(data), "--out", str(tmp_path / "run"), "--ledger", str(tmp_path / "budget.db")]
    assert CliRunner().invoke(app, command).exit_code == 0
    (line,) = ledger.lines.values()
    assert (line.first, line.last, line.finished) == (ledger.period, ledger.period, False)
    data.write_text("\n".join(lines) + "\n")
    assert CliRunner().invoke(app, [*command, "--resume"]).exit_code == 0
    (line,) = ledger.lines.values()
    assert line.finished
    assert line.spent == line.reserved
    assert ledger.verify().ok


@pytest.mark.parametrize(
    ("period", "words"),
    [(None, "of all users but one"), ("month", "but those of one user in one month"), (50, "in one period of 50 rows")],
)
@pytest.mark.parametrize("neighbours", ["replace", "zero-out", "label"])
def test_plain_words_promise_what_the_guarantee_does(period, words, neighbours):
    """Over several periods a user is promised less."""
    privacy = {"epsilon": 1.0, "user": "who", "rows_per_user": 2, "neighbours": neighbours}
    target = {"column": "bought", "positive": ["yes"]}
    declared = contract_of(
        {
            "privacy": privacy | ({} if period is None else {"period": period}),
            "target": target,
            "columns": {"age": {"range": [0, 100]}},
        }
    )
    text = in_plain_words(declared)
    assert words in text
    assert ("sets of labels" in text) == (neighbours == "label")
    assert ("with all of their rows" in text) == (period is None)
    assert ("in several periods is protected less" in text) == (period is not None)


class TestContract:
    def with_privacy(self, **privacy):
        target = {"column": "bought", "classes": ["no", "yes"]}
        columns = {"age": {"range": [0, 100]}}
        return contract_of({"privacy": {"epsilon": 1.0} | privacy, "target": target, "columns": columns})

    def test_it_declares_what_it_was_given(self):
        declared = self.with_privacy(user="who", rows_per_user=4, rows_per_release=2, apart=3, period="month")
        assert contract_of(declared.declared) == declared
        assert declared.digest != self.with_privacy(user="who", rows_per_user=4).digest
        unit = declared.plan().private.unit
        assert (unit.rows, unit.per_release, unit.apart, unit.period) == (4, 2, 3, "month")

    @pytest.mark.parametrize(
        ("privacy", "says"),
        [
            ({"rows_per_user": 4}, "no column of ids"),
            ({"user": "bought", "rows_per_user": 4}, "cannot be the target"),
            ({"user": "age", "rows_per_user": 4}, "or a feature"),
            ({"user": "who", "rows_per_user": 4, "period": "moon"}, "period"),
            ({"user": "who", "apart": 4}, "rows_per_user"),
            ({"user": "who", "rows_per_users": 4}, "Did you mean rows_per_user"),
        ],
    )
    def test_mistakes_are_sentences(self, privacy, says):
        with pytest.raises(InvalidInput, match=says):
            self.with_privacy(**privacy).plan()


def test_ids_without_a_bound_protect_nobody_and_are_rejected(tmp_path):
    toml, data = write_case(tmp_path, 50, rows_per_user=2)
    toml.write_text(toml.read_text().replace("rows_per_user = 2\n", ""))
    made = CliRunner().invoke(app, ["learn", str(toml), str(data), "--out", str(tmp_path / "run")])
    assert isinstance(made.exception, InvalidInput)
    assert "rows_per_user is missing" in str(made.exception)


def test_a_row_without_an_id_is_bad(tmp_path):
    toml, data = write_case(tmp_path, 50, rows_per_user=2)
    lines = data.read_text().splitlines()
    lines[7] = lines[7].rsplit(",", 1)[0] + ","
    data.write_text("\n".join(lines) + "\n")
    declared = read_contract(toml)
    with pytest.raises(InvalidInput, match=r"line 8: who: there is no id"):
        list(open_rows(declared, data))
    [batch] = open_rows(declared, data, bad_rows="zero")
    assert batch.users[6] is None


def test_a_draft_for_users(tmp_path):
    _, data = write_case(tmp_path, 5, rows_per_user=2)
    options = ["--target", "bought", "--positive", "yes", "--epsilon", "1", "--range", "age=0:100"]
    options += ["--categories", "town=Oslo,Rome", "--out", str(tmp_path / "draft.toml"), "-y"]
    made = CliRunner().invoke(app, ["init", str(data), *options, "--user", "who", "--rows-per-user", "4"])
    assert made.exit_code == 0, made.output
    assert read_contract(tmp_path / "draft.toml").rows_per_user == 4
    made = CliRunner().invoke(app, ["init", str(data), *options, "--force", "--user", "who"])
    with pytest.raises(InvalidInput, match=r"privacy\.rows_per_user is still"):
        read_contract(tmp_path / "draft.toml")
