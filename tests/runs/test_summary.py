"""What a run says of itself while it goes on: only what is committed."""

import pytest

from small_run import batches, contract, planned
from taciturn.runs.exporters import Exported
from taciturn.runs.files import Folder
from taciturn.runs.run import begin
from taciturn.runs.summary import ModelFile, ReportFile
from taciturn.store import Store
from taciturn.streams.stored import StoredStream

DECLARED = contract(40)


@pytest.mark.privacy
def test_a_report_waits_for_the_commit(tmp_path):
    """A model that is learnt and not committed may be released again, with other noise: no page has it."""
    folder = Folder(tmp_path)
    store = Store(folder.store)
    run = begin(folder, store, planned(DECLARED, None), DECLARED.digest, seconds=1e9, format="csv")
    run.exporters = (*run.exporters, ReportFile(DECLARED, seconds=0.0))
    batch = next(batches(DECLARED, 20, 20))
    run.learn(batch.X, batch.y)
    assert run.stream.k > 0
    run.export()
    assert not folder.report.exists()
    run.commit()
    assert folder.report.exists()


@pytest.mark.privacy
def test_what_is_exported_beside_a_run_is_what_was_committed_when_it_was_read(tmp_path):
    """Another process commits between two steps of an exporter: the file ends where its stream was read."""
    folder, beside = Folder(tmp_path), Folder(tmp_path / "beside")
    beside.path.mkdir()
    store, plan = Store(folder.store), planned(DECLARED, None)
    run = begin(folder, store, plan, DECLARED.digest, seconds=1e9, format="csv")
    batch = next(batches(DECLARED, 20, 20))
    run.learn(batch.X[:10], batch.y[:10])
    run.commit()
    read = Exported(beside, StoredStream(store, plan, store.load("stream")), (ModelFile(DECLARED),))
    first = folder.models.path.read_bytes()
    run.learn(batch.X[10:], batch.y[10:])
    run.commit()
    read.export()
    assert beside.models.path.read_bytes() == first
    Exported(beside, StoredStream(store, plan, store.load("stream")), (ModelFile(DECLARED),)).export()
    assert beside.models.path.read_bytes() == folder.models.path.read_bytes() != first
