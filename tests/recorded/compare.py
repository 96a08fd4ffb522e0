"""Recorded streams: what every front releases, stores and charges, compared with the records beside this file.

    python tests/recorded/compare.py                     compare all streams; exit status 1 if one differs
    python tests/recorded/compare.py --only scikit       those whose names contain a text; may be repeated
    python tests/recorded/compare.py --write             record anew; with --only, those streams alone
    python tests/recorded/compare.py --list              what each stream covers
    python tests/recorded/compare.py --keep FOLDER       also save the arrays of each stream, as FOLDER/NAME.npz
    python tests/recorded/compare.py --against FOLDER    say by how much arrays differ from those that were kept

A stream is a function in `library.py`, `scikit.py`, `rivers.py`, `commands.py`, `services.py` or `deciding.py`; it uses
the package by `fronts.py` alone. Recorded are released numbers, the numbers of `model.json`, exact states after
decryption, spent and reserved cost, and mu, epsilon, delta, relation and unit of the guarantee. Texts, hashes of
settings, names of streams and numbers of generations are not.

**Seeds.** Streams that release are simulations: `seed=` of recipes, estimators, bandits, `FileStream` and `Service`,
and `--seed` of the command. Streams in a ledger have secret noise, as simulations reserve nothing: of these, costs and
exact sums are recorded, which do not depend on noise. Choices of bandits come from the same seed. Nothing is patched.

**Machines.** The last bits depend on the instructions that compiled code, NumPy and OpenBLAS choose by the processor,
and on their versions; fitted strategies depend on them, too, and are cached on a machine. So workers are told to use
the instructions of x86-64-v3 (AVX2 and FMA, without AVX-512) and one thread of BLAS, they have a cache of their own
(`build/recorded`), and the records name the versions that they were made with. On a processor without AVX2, or with
other versions, a difference may be one of the machine: this is said, and the exit status is then 2. To compare two
commits on such a machine, write records of the first to another folder, `compare.py --write --records FOLDER` in its
worktree, and call `compare.py --records FOLDER` in the other.

The first run after a change compiles, and fits strategies, for one to two minutes.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import platform
import sys
import tempfile
import time
import traceback
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE.parent)]

RECORDS = HERE / "records"
FITS = HERE.parents[1] / "build" / "recorded"  # a cache of fitted strategies, apart from that of other processes
MODULES = ("services", "stores", "commands", "scikit", "library", "rivers", "deciding")
WORKERS = 3  # one more than cores: streams of services mostly wait
VERSIONS = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn", "river", "pyarrow", "pandas")
PLATFORM = "platform.json"
OTHER_MACHINE = 2  # the exit status if differences may be those of the machine
V3 = "sse sse2 sse3 ssse3 sse4.1 sse4.2 avx avx2 fma bmi bmi2 f16c lzcnt movbe popcnt cx16 sahf fxsr mmx xsave"


def main() -> int:
    """Run streams in processes of their own, and write or compare what they record."""
    asked = options()
    known = table()
    names = [name for name in known if not asked.only or any(each in name for each in asked.only)]
    if asked.list:
        for name in names:
            print(f"{name:28} {(known[name].__doc__ or '').splitlines()[0]}")
        return 0
    here = on_this_machine()
    began, found = time.monotonic(), {}
    os.environ.update(environment())  # of the workers, which are new processes
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(asked.workers, len(names) or 1), context) as pool:
        futures = {pool.submit(run, name, asked.keep, asked.against): name for name in names}
        for done in as_completed(futures):
            found[futures[done]] = done.result()
    seconds = time.monotonic() - began
    failed = {name: made for name, (made, _, _) in found.items() if isinstance(made, str)}
    for name, text in failed.items():
        print(f"{name}: it could not be run.\n{text}")
    if asked.write:
        written = {name: found[name][0] for name in names if name not in failed}
        size = write(asked.records, written, here)
        print(f"{len(written)} streams recorded in {seconds:.0f} s; {size:,} bytes in {asked.records}.")
        return 1 if failed else 0
    return compared(asked.records, {n: each for n, each in found.items() if n not in failed}, here, seconds, failed)


def options() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="record anew")
    parser.add_argument("--only", action="append", metavar="TEXT", help="streams whose names contain this")
    parser.add_argument("--list", action="store_true", help="list the streams")
    parser.add_argument("--records", type=Path, default=RECORDS, metavar="FOLDER", help="where the records are")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="save all arrays there")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="measure differences from arrays saved there")
    parser.add_argument("--workers", type=int, default=WORKERS, metavar="N", help="processes that run streams")
    return parser.parse_args()


def table() -> dict:
    """The streams by name, slow ones first."""
    for module in MODULES:
        import_module(f"recorded.{module}")
    from recorded.registry import STREAMS

    return STREAMS


def run(name: str, keep: Path | None, against: Path | None) -> tuple[object, float, dict[str, float]]:
    """What a stream records, or the text of its error; its seconds; and by how much arrays differ from saved ones."""
    from recorded.values import arrays_in, recorded

    logging.getLogger("taciturn").addHandler(logging.NullHandler())  # a service does not show runs that are simulations
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about budgets that are too small to learn anything
            made = table()[name](Path(folder))
        arrays = dict(arrays_in(made))
        if keep is not None:
            save(keep, name, arrays)
        return recorded(made), time.monotonic() - began, measured(against, name, arrays)
    except Exception:
        return traceback.format_exc(), time.monotonic() - began, {}


def save(folder: Path, name: str, arrays: dict) -> None:
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / f"{file_of(name)}.npz", **arrays)


def measured(folder: Path | None, name: str, arrays: dict) -> dict[str, float]:
    """The largest difference of each array from the one of this name that was saved."""
    import numpy as np

    if folder is None or not (folder / f"{file_of(name)}.npz").exists():
        return {}
    with np.load(folder / f"{file_of(name)}.npz") as saved:
        pairs = {at: (saved[at], array) for at, array in arrays.items() if at in saved.files}
    return {
        at: float(np.max(np.abs(one.astype(np.float64) - other)))
        for at, (one, other) in pairs.items()
        if one.shape == other.shape and one.size and one.tobytes() != other.tobytes()
    }


# The machine.


def environment() -> dict[str, str]:
    """What workers are told, so that compiled code, NumPy and OpenBLAS use instructions of x86-64-v3 alone."""
    told = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(FITS)}
    if platform.machine() != "x86_64":
        return told
    import numpy as np

    extensions = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    beyond = [each for each in extensions if each.startswith(("AVX512", "X86_V4"))]
    return told | {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": ",".join(f"+{feature}" for feature in V3.split()),
        "OPENBLAS_CORETYPE": "Haswell",
        **({"NPY_DISABLE_CPU_FEATURES": " ".join(beyond)} if beyond else {}),
    }


def on_this_machine() -> dict[str, str]:
    """What records depend on beside the sources: instructions and versions."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    fits = platform.machine() == "x86_64" and features.get("avx2", False) and features.get("fma", False)
    here = {"instructions": "x86-64-v3" if fits else f"{platform.machine()} {binding.get_host_cpu_name()}"}
    here |= {"python": platform.python_version(), "libc": " ".join(platform.libc_ver())}
    return here | {name: version(name) for name in VERSIONS}


# Records.


def file_of(name: str) -> str:
    return name.replace(" ", "_").replace(",", "")


def write(folder: Path, made: dict[str, object], here: dict[str, str]) -> int:
    """Write records, and what they were made with; how many bytes there are now in all."""
    from recorded.values import text_of

    folder.mkdir(parents=True, exist_ok=True)
    for name, each in made.items():
        (folder / f"{file_of(name)}.json").write_text(f"{text_of(each)}\n")
    (folder / PLATFORM).write_text(f"{json.dumps(here, indent=1)}\n")
    return sum(path.stat().st_size for path in folder.glob("*.json"))


def compared(
    folder: Path, found: dict[str, tuple], here: dict[str, str], seconds: float, failed: dict[str, str]
) -> int:
    """Print a table of the differences; 0 if there are none, 2 if they may be those of the machine, else 1."""
    from recorded.values import differences

    rows: list[tuple[str, str, str, str]] = []
    for name, (made, _, sizes) in sorted(found.items()):
        path = folder / f"{file_of(name)}.json"
        if not path.exists():
            rows.append((name, "all of it", "not recorded", "record it by --write"))
            continue
        for at, old, new in differences(json.loads(path.read_text()), json.loads(json.dumps(made))):
            rows.append((name, at, old, new + (f"; by {sizes[at]:.3g} at most" if at in sizes else "")))
    for name, at, old, new in rows:
        print(f"{name} | {at}\n    recorded  {old}\n    now       {new}")
    differing = {name for name, *_ in rows}
    print(f"{len(found) - len(differing)} of {len(found) + len(failed)} streams are as recorded ({seconds:.0f} s).")
    if failed or not rows:
        return 1 if failed else 0
    if not (other := other_versions(here, folder)):
        return 1
    print("Write records of the commit to compare with on this machine, by --write --records FOLDER in its worktree.")
    print(f"The records may not hold on this machine: they were made with {other}.")
    return OTHER_MACHINE


def other_versions(here: dict[str, str], folder: Path) -> str:
    """What records were made with that is not so here; nothing if all of it is."""
    path = folder / PLATFORM
    known = json.loads(path.read_text()) if path.exists() else {}
    return "; ".join(f"{what} {known.get(what)}, here {each}" for what, each in here.items() if known.get(what) != each)


if __name__ == "__main__":
    sys.exit(main())
