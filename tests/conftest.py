"""What every test file may import by its bare name: `from zoo import LOSSES`; and where data files may lie."""

import os
import sys
from pathlib import Path

from hypothesis import settings

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.append(HERE)

DATA = Path(__file__).parents[2] / "shared" / "data"  # a folder beside the repository, if there is one
if DATA.is_dir() and not os.environ.get("TACIT_DATA"):
    os.environ["TACIT_DATA"] = str(DATA)

settings.register_profile("tacit", deadline=None, derandomize=True, database=None)
settings.load_profile("tacit")
