"""What every test file may import by its bare name: `from zoo import LOSSES`."""

import sys
from pathlib import Path

from hypothesis import settings

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.append(HERE)

settings.register_profile("tacit", deadline=None, derandomize=True, database=None)
settings.load_profile("tacit")
