"""The package as it is installed: source distribution, wheel, metadata, pins; the README in an empty environment."""

from __future__ import annotations

import email
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import textwrap
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import taciturn

ROOT = Path(__file__).parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = CONFIG["project"]
EXTRAS = PROJECT["optional-dependencies"]
README = (ROOT / "README.md").read_text(encoding="utf-8")

PLANTED = {"static/page.html", "static/css/style.css", "store/tables/1.sql"}
"""Files that are added to the package before it is built: data of any kind and in any folder is part of it."""

LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "out", "*.egg-info", "__pycache__")


# ---- building --------------------------------------------------------------------------------------


class Built(NamedTuple):
    """What a build was made of, and what it made."""

    source: Path
    sdist: Path
    wheel: Path


def backend(folder: Path, call: str, out: Path) -> Path:
    """Call the build backend of this environment, as pip and `build` do; nothing is downloaded."""
    code = f"import sys; from setuptools import build_meta; print(build_meta.{call}(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(out)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"setuptools {importlib.metadata.version('setuptools')}: {done.stderr}"
    return out / done.stdout.splitlines()[-1]


def build(folder: Path, manifest: str | None = None) -> Built:
    """Build the source distribution of a copy of the project, and the wheel of that distribution."""
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=LEFT_OUT)
    for name in PLANTED:
        path = source / "src" / "taciturn" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("planted", encoding="utf-8")
    if manifest is not None:
        (source / "MANIFEST.in").write_text(manifest, encoding="utf-8")
    cached = source / "src" / "taciturn" / "__pycache__"  # as the interpreter and Numba leave behind
    cached.mkdir()
    for name in ("a.cpython-311.pyc", "a.cpython-311.1.nbc", "a.cpython-311.nbi"):
        (cached / name).write_bytes(b"")
    sdist = backend(source, "build_sdist", folder)
    shutil.rmtree(cached)
    return Built(source, sdist, backend(unpacked(sdist, folder / "unpacked"), "build_wheel", folder))


def unpacked(sdist: Path, folder: Path) -> Path:
    """The root of an unpacked source distribution."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    needed = next(Requirement(text) for text in CONFIG["build-system"]["requires"] if text.startswith("setuptools"))
    held = importlib.metadata.version("setuptools")
    assert held in needed.specifier, f"setuptools {held} is installed and {needed} is needed: run make once more"
    return build(tmp_path_factory.mktemp("built"))


def package_files(folder: Path) -> set[str]:
    """Every file of the package in a source tree."""
    package = folder / "src" / "taciturn"
    return {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()}


def sdist_files(sdist: Path) -> set[str]:
    """Every file of the package in a source distribution."""
    with tarfile.open(sdist) as archive:
        names = [member.name.partition("/")[2] for member in archive if member.isfile()]
    return {name.removeprefix("src/taciturn/") for name in names if name.startswith("src/taciturn/")}


def wheel_files(wheel: Path) -> set[str]:
    """Every file of a wheel that will be installed, but for its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert {name.partition("/")[0] for name in names} == {"taciturn"}
    return {name.removeprefix("taciturn/") for name in names}


def test_every_file_of_the_package_is_in_both_archives(built):
    """Python, stubs, the marker of types and all data; nothing that the interpreter leaves behind."""
    files = package_files(built.source)
    assert files - package_files(ROOT) == PLANTED
    assert {"__init__.py", "__init__.pyi", "py.typed"} | PLANTED < files
    assert sdist_files(built.sdist) == files
    assert wheel_files(built.wheel) == files


def test_a_forgotten_file_would_be_noticed(tmp_path):
    """With a manifest that lists Python alone, the comparison names the data."""
    forgetful = build(tmp_path, manifest="recursive-include src/taciturn *.py\n")
    assert package_files(forgetful.source) - wheel_files(forgetful.wheel) >= PLANTED
    assert package_files(forgetful.source) - sdist_files(forgetful.sdist) >= PLANTED


def test_the_source_distribution_can_be_worked_on(built):
    """It holds what the Makefile and the README name, and the tests."""
    with tarfile.open(built.sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive}
    assert {"LICENSE", "Makefile", "README.md", "constraints.txt", "mkdocs.yml", "pyproject.toml"} < names
    assert {"tests/conftest.py", "docs/index.md", "docs_build/hooks.py"} < names
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "examples").glob("*.py")} < names


# ---- what the archives say about themselves --------------------------------------------------------


@pytest.fixture(scope="session")
def metadata(built):
    with zipfile.ZipFile(built.wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


def test_the_metadata_is_the_projects(built, metadata):
    """Name, version, licence, extras and the command are those of pyproject.toml; the version is the package's."""
    assert metadata["Name"] == "taciturn"
    assert metadata["Version"] == taciturn.__version__
    assert built.wheel.name == f"taciturn-{taciturn.__version__}-py3-none-any.whl"
    assert metadata["Requires-Python"] == PROJECT["requires-python"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert set(metadata.get_all("Provides-Extra")) == set(EXTRAS)
    assert metadata.get_all("Classifier") == PROJECT["classifiers"]
    with zipfile.ZipFile(built.wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        assert archive.read(name).decode().split() == ["[console_scripts]", "taciturn", "=", "taciturn.cli.app:main"]


def test_the_classifiers_are_the_supported_pythons():
    """Consecutive versions, from the oldest that is required; the pins are made for the same ones."""
    named = re.findall(r"Python :: 3\.(\d+)", "\n".join(PROJECT["classifiers"]))
    minors = [int(minor) for minor in named]
    assert minors == list(range(minors[0], minors[-1] + 1))
    assert PROJECT["requires-python"] == f">=3.{minors[0]}"
    assert f"for Python 3.{minors[0]} to 3.{minors[-1]}." in (ROOT / "constraints.txt").read_text(encoding="utf-8")


def requirements(*extras: str) -> list[Requirement]:
    """What the package needs with these extras, those that they name included."""
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in EXTRAS[extra])]
    mine = [Requirement(text) for text in texts]
    others = [requirement for requirement in mine if requirement.name != "taciturn"]
    nested = sorted({extra for requirement in mine if requirement.name == "taciturn" for extra in requirement.extras})
    return others + (requirements(*nested) if nested else [])


def test_all_is_for_one_machine():
    """The extra `all` holds the command, plots, estimators and readers; no cluster, and no tool of developers."""
    (everything,) = [Requirement(text) for text in EXTRAS["all"]]
    assert {"cli", "plot", "sklearn", "river", "data"} <= everything.extras
    names = {requirement.name for requirement in requirements("all")}
    assert {"typer", "matplotlib", "scikit-learn", "river", "pandas", "pyarrow"} <= names
    assert not names & {"pyspark", "pyspark-connect", "pyspark-client", "pytest", "mkdocs", "ruff"}


# ---- importing -------------------------------------------------------------------------------------

IMPORT_ALL = """
import importlib, json, pkgutil, sys
sys.path[:0] = json.loads(sys.argv[1])
import taciturn
names = [m.name for m in pkgutil.walk_packages(taciturn.__path__, "taciturn.") if not m.name.endswith("__main__")]
files = [importlib.import_module(name).__file__ for name in names]
from taciturn.cli.app import main
print(json.dumps([taciturn.__file__, *files]))
"""


def test_the_wheel_imports_in_isolation(built, tmp_path):
    """Every module of the unpacked wheel, with the dependencies of this environment and nothing of the checkout."""
    with zipfile.ZipFile(built.wheel) as archive:
        archive.extractall(tmp_path)
    paths = [str(tmp_path), *{sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}]
    command = [sys.executable, "-I", "-S", "-c", IMPORT_ALL, json.dumps(paths)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    modules = {Path(file).relative_to(tmp_path / "taciturn").as_posix() for file in json.loads(done.stdout)}
    assert modules == {name for name in wheel_files(built.wheel) if name.endswith(".py")} - {"__main__.py"}


# ---- pins ------------------------------------------------------------------------------------------


def pins() -> dict[str, Version]:
    """The version of each package in constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def reachable(roots: list[Requirement], requires: dict[str, list[str]]) -> set[str]:
    """Every package that `roots` may lead to, on any system; `requires` holds what each known package requires."""
    seen: set[tuple[str, str]] = set()
    queue = list(roots)
    while queue:
        requirement = queue.pop()
        name = canonicalize_name(requirement.name)
        extras = {"", *requirement.extras} - {extra for other, extra in seen if other == name}
        seen |= {(name, extra) for extra in extras}
        for needed in map(Requirement, requires.get(name, []) if extras else []):
            optional = needed.marker is not None and "extra ==" in str(needed.marker)
            if not optional or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                queue.append(needed)
    return {name for name, _ in seen}


def installed() -> dict[str, list[str]]:
    """The packages of this environment, and what each requires."""
    result = importlib.metadata.distributions()
    return {canonicalize_name(each.metadata["Name"]): each.requires or [] for each in result}


def test_the_pins_are_sorted_and_unique():
    """One line for each package, by its name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    names = [canonicalize_name(line.partition("==")[0]) for line in lines if not line.startswith("#")]
    assert len(set(names)) == len(names)
    assert [line for line in lines if not re.fullmatch(r"#.*|[\w.-]+==[\w.]+", line)] == []


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_requirement_has_a_pin_that_satisfies_it(extra):
    """Of the package and of each extra."""
    held = pins()
    for requirement in requirements(extra):
        assert held[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_no_installed_pin_is_stale():
    """A pinned package that this environment holds is one that an extra leads to."""
    held, present = set(pins()), installed()
    assert held & set(present) - reachable(requirements(*EXTRAS), present) == set()


def test_a_stale_pin_would_be_noticed():
    """A package that only an extra of another leads to counts if that extra is asked for."""
    requires = {"a": ["b", "c; extra == 'more'", "d; sys_platform == 'nowhere'"], "b": [], "stale": []}
    assert reachable([Requirement("a")], requires) == {"a", "b", "d"}
    assert reachable([Requirement("a"), Requirement("a[more]")], requires) == {"a", "b", "c", "d"}


def test_nothing_names_a_package_registry():
    """Where packages come from is the choice of the machine, not of the project."""
    files = [ROOT / name for name in ("pyproject.toml", "Makefile", "constraints.txt", ".ci/run", "README.md")]
    hosts = re.compile(r"pypi\.org|pythonhosted|index-url|find-links", re.I)
    assert [path.name for path in files if path.exists() and hosts.search(path.read_text(encoding="utf-8"))] == []
    assert [path.name for path in ROOT.iterdir() if path.suffix == ".lock"] == []


def test_extras_are_installed_from_the_checkout():
    """No index has the package: a name such as package[extra] fails everywhere but in pyproject.toml."""
    texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    texts += [*(ROOT / "deploy").iterdir(), *(ROOT / "examples").glob("*.*")]
    read = {path.name: path.read_text(encoding="utf-8") for path in texts if path.is_file()}
    assert len(read) > 100
    assert [name for name, text in read.items() if re.search(r"taciturn\[\w", text)] == []
    local = re.compile(r'pip\s+install [^`\n]*"\.\[([a-z,]+)\]"')
    named = {extra for text in read.values() for listed in local.findall(text) for extra in listed.split(",")}
    assert {"all", "river", "serve"} <= named <= set(EXTRAS)


@pytest.mark.parametrize(
    ("module", "missing", "extra"),
    [
        ("taciturn.cli.app", "typer", "cli"),
        ("taciturn.estimators.scaling", "sklearn", "sklearn"),
        ("taciturn.estimators.search", "sklearn", "sklearn"),
        ("taciturn.estimators.sklearn", "sklearn", "sklearn"),
        ("taciturn.estimators.to_sklearn", "sklearn", "sklearn"),
        ("taciturn.estimators.river", "river", "river"),
    ],
)
def test_a_module_without_its_extra_says_how_to_install_it(module, missing, extra):
    code = f"import sys; sys.modules[{missing!r}] = None\nimport {module}"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert shown.returncode == 1
    assert f'run pip install -c constraints.txt ".[{extra}]".' in shown.stderr.splitlines()[-1]


# ---- the README in an empty environment ------------------------------------------------------------

BLOCK = re.compile(r"^(?P<indent> *)```python\n(?P<code>.*?)^(?P=indent)```$", re.M | re.S)
INSTALL = re.compile(r"\bpip (install [^`\n#]*)")

WHERE = """
import sys, taciturn
assert taciturn.__file__.startswith(sys.prefix), taciturn.__file__
"""


def test_the_readme_says_how_to_install_before_it_uses_the_package():
    """One line, which installs all that the examples need with the pinned versions."""
    lines = [match for match in INSTALL.finditer(README) if match.start() < BLOCK.search(README).start()]
    assert [shlex.split(line[1]) for line in lines] == [["install", "-c", "constraints.txt", ".[all]"]]


def bare_environment() -> dict[str, str]:
    """Without what leads an interpreter to this checkout or environment."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints; a failure shows its error."""
    environment = bare_environment() | {"MPLBACKEND": "Agg"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
def test_the_readme_runs_in_an_empty_environment(built, tmp_path):
    """Its install line, in the unpacked source distribution, makes an environment in which its examples run."""
    folder, elsewhere = tmp_path / "environment", tmp_path / "elsewhere"
    venv.create(folder, with_pip=True)
    elsewhere.mkdir()
    python = folder / "bin" / "python"
    run(python, "-m", "pip", *shlex.split(INSTALL.search(README)[1]), cwd=unpacked(built.sdist, tmp_path / "sdist"))
    run(python, "-m", "pip", "check", cwd=elsewhere)
    listed = json.loads(run(python, "-m", "pip", "list", "--format", "json", cwd=elsewhere))
    versions = {canonicalize_name(each["name"]): Version(each["version"]) for each in listed}
    assert versions.pop("taciturn") == Version(taciturn.__version__)
    tools = {"pip", "setuptools"}  # which the environment was created with
    assert {name: version for name, version in versions.items() if name not in tools}.items() <= pins().items()
    blocks = [textwrap.dedent(match["code"]) for match in BLOCK.finditer(README)]
    assert len(blocks) >= 3
    script = elsewhere / "readme.py"
    script.write_text("\n".join([WHERE, *blocks]), encoding="utf-8")
    run(python, "-I", script, cwd=elsewhere)
    assert run(folder / "bin" / "taciturn", "--version", cwd=elsewhere).split() == ["taciturn", taciturn.__version__]


@pytest.mark.slow
def test_the_pins_are_what_all_extras_install(built, tmp_path):
    """A resolution of every extra takes only pinned packages, and every pin is one that it may lead to."""
    folder, report = unpacked(built.sdist, tmp_path / "sdist"), tmp_path / "report.json"
    extras = ",".join(sorted(set(EXTRAS) - {"all"}))
    options = ["--dry-run", "--ignore-installed", "--quiet", "--report", str(report), "-c", "constraints.txt"]
    run(Path(sys.executable), "-m", "pip", "install", *options, f".[{extras}]", cwd=folder)
    result = [each["metadata"] for each in json.loads(report.read_text(encoding="utf-8"))["install"]]
    resolved = {canonicalize_name(each["name"]): each for each in result}
    mine = resolved.pop("taciturn")
    assert SpecifierSet(mine["requires_python"]).contains(Version(sys.version.split()[0]))
    requires = {name: each.get("requires_dist", []) for name, each in resolved.items()}
    assert {name: Version(each["version"]) for name, each in resolved.items()}.items() <= pins().items()
    assert set(pins()) - reachable(requirements(*EXTRAS), requires) == set()
