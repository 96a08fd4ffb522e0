"""Import paths of the tests (`from instances import LOSSES`, `from docs_build import svg`), and data files."""

import sys
from pathlib import Path

import pytest
from hypothesis import settings

HERE, ROOT = str(Path(__file__).parent), str(Path(__file__).parents[1])
sys.path += [folder for folder in (HERE, ROOT) if folder not in sys.path]

settings.register_profile("taciturn", deadline=None, derandomize=True, database=None)
settings.load_profile("taciturn")


@pytest.fixture(scope="session")
def data_file():
    """A function from names of a data file to its path, searched as a loader does; without the file the test skips."""

    def locate(*names):
        from taciturn.datasets.files import held

        return held(*names) or pytest.skip(
            f"neither TACITURN_DATA nor the cache holds {' or '.join(names)}; docs/datasets.md says where to get it"
        )

    return locate
