"""What every test file may import: `from zoo import LOSSES`, `from docs_build import svg`; and where data files lie."""

import os
import sys
from pathlib import Path

from hypothesis import settings

HERE, ROOT = str(Path(__file__).parent), str(Path(__file__).parents[1])
sys.path += [folder for folder in (HERE, ROOT) if folder not in sys.path]

DATA = Path(__file__).parents[2] / "shared" / "data"  # a folder beside the repository, if there is one
if DATA.is_dir() and not os.environ.get("TACIT_DATA"):
    os.environ["TACIT_DATA"] = str(DATA)

settings.register_profile("tacit", deadline=None, derandomize=True, database=None)
settings.load_profile("tacit")
