"""Builds the Python package into an environment of its own (target/python/venv) and tests it there.

Needs nothing but Python 3.11 with its venv module; everything else is installed by name from the configured package
index, at the versions of requirements.txt. `./bulkhead test "python package"` calls `python3 python/develop.py test`.

    python3 python/develop.py build     make the environment, build the package into it
    python3 python/develop.py test      the same, then the linter, the type checker and the tests
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PLACE = ROOT / "target" / "python"
VENV = PLACE / "venv"
# xtask takes this exit code for "cannot run here", and the last line on standard error for the reason.
CANNOT_RUN = 77


def tool(name: str) -> str:
    """Path of a program of the environment."""
    return str(VENV / "bin" / name)


def call(*command: str, **variables: str) -> None:
    """Runs a command; ends with its exit code if it fails."""
    print("==", " ".join(command), file=sys.stderr, flush=True)
    # Where rustup puts Cargo, for shells that were started before it was there.
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "bin"
    variables["PATH"] = f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{cargo}"
    code = subprocess.call(command, cwd=HERE, env={**os.environ, **variables})
    if code != 0:
        sys.exit(1)


def cannot_run(reason: str) -> None:
    """Ends the program, saying why."""
    print(reason, file=sys.stderr)
    sys.exit(CANNOT_RUN)


def environment() -> None:
    """Makes the environment, once for each version of Python and of the requirements."""
    if sys.version_info < (3, 11):  # noqa: UP036, because this file is run before any check of versions
        cannot_run(f"Python 3.11 is needed, this is {sys.version.split()[0]}")
    requirements = (HERE / "requirements.txt").read_text(encoding="utf-8")
    wanted = f"{sys.version}\n{requirements}"
    stamp = VENV / "made-from"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return
    shutil.rmtree(VENV, ignore_errors=True)
    PLACE.mkdir(parents=True, exist_ok=True)
    if subprocess.call([sys.executable, "-m", "venv", str(VENV)]) != 0:
        cannot_run("Python's venv does not work; install it, for example: apt-get install python3-venv")
    install = [tool("pip"), "install", "--quiet", "--disable-pip-version-check", "-r", str(HERE / "requirements.txt")]
    if subprocess.call(install) != 0:
        cannot_run("packages of python/requirements.txt cannot be installed; is there a network?")
    stamp.write_text(wanted, encoding="utf-8")


def build() -> None:
    """Builds the wheel, optimised, and installs it in the environment."""
    wheels = PLACE / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    call(tool("maturin"), "build", "--quiet", "--release", "--locked", "--out", str(wheels),
         "--interpreter", tool("python"))  # fmt: skip
    wheel = next(wheels.glob("*.whl"))
    call(tool("pip"), "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--force-reinstall", str(wheel))


def test() -> None:
    """Linter, type checker, tests."""
    call(tool("ruff"), "check", "--quiet", ".")
    call(tool("ruff"), "format", "--quiet", "--check", ".")
    call(tool("mypy"), "--no-error-summary", "package/bulkhead", "tests", "develop.py")
    # Tests compare the package with the command.
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    call("cargo", "build", "--release", "--quiet", "--locked", "--package", "bulkhead")
    call(tool("pytest"), BULKHEAD_ROOT=str(ROOT), BULKHEAD_PROGRAM=str(Path(target) / "release" / "bulkhead"))


def main() -> None:
    """Does what the first argument says."""
    task = sys.argv[1] if len(sys.argv) == 2 else "help"
    if task not in ("build", "test"):
        sys.exit(__doc__)
    environment()
    build()
    if task == "test":
        test()


if __name__ == "__main__":
    main()
