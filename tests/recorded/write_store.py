"""Stores as the code of today writes them, for later code to open.

    python tests/recorded/write_store.py                  write the archive and the dump, half-way, beside this file
    python tests/recorded/write_store.py --postgres       restore the dump, and compare what follows with the records

The archive (`stores/written.tar.xz`) has a SQLite store of a service, folders of runs, and dumps of models; the dump
(`stores/written.sql.xz`) is the store of the same service in PostgreSQL, by `pg_dump`. All of them are simulations, but
for one stream that is charged to a ledger; keys and tokens in them are of no other use. What comes when they go on is
recorded with all other streams: `compare.py --only store`. Write them once, at the commit whose stores are to be
opened, and record what follows there; later commits only compare.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE.parent)]

from recorded.compare import OTHER_MACHINE, RECORDS, environment, file_of, on_this_machine, other_versions  # noqa: E402

DUMP = HERE / "stores" / "written.sql.xz"
AGAIN = "TACITURN_RECORDING"  # set in the process that has the instructions of records


def main() -> int:
    """Do what was asked for, in a process with the instructions of the records."""
    if AGAIN not in os.environ:
        told = os.environ | environment() | {AGAIN: "1"}
        return subprocess.run([sys.executable, __file__, *sys.argv[1:]], env=told, check=False).returncode
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", action="store_true", help="restore the dump, and compare what follows")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # about budgets that are too small to learn anything
    with tempfile.TemporaryDirectory() as folder:
        return restored(Path(folder)) if asked.postgres else written(Path(folder))


def written(folder: Path) -> int:
    """Write the archive and the dump."""
    from postgres_server import throwaway_server
    from recorded.stores import ARCHIVE, fill, packed, write_all

    ARCHIVE.parent.mkdir(exist_ok=True)
    archived = folder / "archive"
    archived.mkdir()
    write_all(archived)
    served = archived / "postgres"
    served.mkdir()
    with throwaway_server() as server:
        address = server.new_database()
        fill(address, served)
        program = [server.own.bin_path / "pg_dump", "--inserts", "--no-owner", "--no-privileges", address]
        dump = subprocess.run(program, check=True, capture_output=True).stdout
    DUMP.write_bytes(lzma.compress(dump, preset=9))
    ARCHIVE.write_bytes(packed(archived))
    for path in (ARCHIVE, DUMP):
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    return 0


def restored(folder: Path) -> int:
    """Restore the dump in a new database, and compare what follows with what follows of the SQLite store."""
    import psycopg

    from postgres_server import throwaway_server
    from recorded.stores import go_on, unpacked
    from recorded.values import differences, recorded

    served = unpacked(folder, "postgres")
    with throwaway_server() as server:
        address = server.new_database()
        statements = lzma.decompress(DUMP.read_bytes()).decode()
        with psycopg.connect(address, autocommit=True) as connection:  # lines that begin with \ are for psql
            connection.execute("\n".join(line for line in statements.splitlines() if not line.startswith("\\")))
        made = recorded(go_on(address, served))
    expected = json.loads((RECORDS / f"{file_of('store of a service')}.json").read_text())
    found = list(differences(expected, json.loads(json.dumps(made))))
    for at, old, new in found:
        print(f"PostgreSQL | {at}\n    recorded  {old}\n    now       {new}")
    if found and (other := other_versions(on_this_machine(), RECORDS)):
        print(f"The records may not hold on this machine: they were made with {other}.")
        return OTHER_MACHINE
    print(f"The store in PostgreSQL goes on {'in another way' if found else 'as recorded'}.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
