"""What a run says of itself while it goes on: only what is committed."""

import pytest

from small_run import batches, contract, planned
from taciturn.runs.files import Folder
from taciturn.runs.run import begin
from taciturn.runs.summary import ReportFile
from taciturn.store import Store

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
