"""Makes another Pulumi project find our provider."""

import shutil
import sys
from pathlib import Path

import yaml

_EXECUTABLE = "pulumi-resource-plumbline"


class ProjectUnchanged(Exception):
    """The project's file was left as it is; the message says why and what to do by hand."""


def add_provider(folder: Path) -> str:
    """Add the lines to Pulumi.yaml that name the folder of our provider's executable.

    The file is appended to, never rewritten: comments and order stay.

    Returns:
        What was done, in a sentence.

    Raises:
        ProjectUnchanged: there is no project, no executable, or the file has a `plugins` section already.
    """
    file = next((folder / name for name in ("Pulumi.yaml", "Pulumi.yml") if (folder / name).is_file()), None)
    if file is None:
        raise ProjectUnchanged(f"no Pulumi.yaml in {folder.resolve()}: run `pulumi new python` there first")
    lines = _lines(_executable_folder(), folder.resolve())
    project = yaml.safe_load(file.read_text("utf-8")) or {}
    providers = (project.get("plugins") or {}).get("providers") or []
    if any(provider.get("name") == "plumbline" for provider in providers):
        return f"{file.name} names the provider already; nothing was changed"
    if "plugins" in project:
        raise ProjectUnchanged(f"{file.name} has a plugins section; add to its providers by hand:\n{lines}")
    text = file.read_text("utf-8")
    file.write_text(text + ("" if text.endswith("\n") or not text else "\n") + lines, "utf-8")
    return f"added to {file.name}:\n{lines}"


def _executable_folder() -> Path:
    """The folder of the executable that belongs to this installation."""
    beside = Path(sys.executable).parent
    if (beside / _EXECUTABLE).is_file():
        return beside
    found = shutil.which(_EXECUTABLE)
    if found is None:
        raise ProjectUnchanged(f"{_EXECUTABLE} is not installed beside {sys.executable}: install the wheel there")
    return Path(found).parent


def _lines(executables: Path, folder: Path) -> str:
    """Relative to the project where it lies inside it, so that a checkout works for everybody."""
    path = executables.relative_to(folder) if executables.is_relative_to(folder) else executables
    return f"plugins:\n  providers:\n    - name: plumbline\n      path: {path}\n"
