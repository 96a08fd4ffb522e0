"""What every test file may import: `from zoo import LOSSES`, `from docs_build import svg`; and where data files lie."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

HERE, ROOT = str(Path(__file__).parent), str(Path(__file__).parents[1])
sys.path += [folder for folder in (HERE, ROOT) if folder not in sys.path]

DATA = Path(__file__).parents[2] / "shared" / "data"  # a folder beside the repository, if there is one
if DATA.is_dir() and not os.environ.get("TACITURN_DATA"):
    os.environ["TACITURN_DATA"] = str(DATA)

settings.register_profile("taciturn", deadline=None, derandomize=True, database=None)
settings.load_profile("taciturn")


@pytest.fixture(scope="session")
def data_file():
    """Where a data file lies, by any of its names, as a loader finds it; where there is none, the test is skipped."""

    def locate(*names):
        from taciturn.datasets.files import folders

        for path in (folder / name for folder in folders() for name in names):
            if path.is_file():
                return path
        return pytest.skip(
            f"neither TACITURN_DATA nor the cache holds {' or '.join(names)}; docs/datasets.md says where it is"
        )

    return locate
