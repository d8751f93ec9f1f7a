"""Carry the release notebooks in the wheel, as `autograder/release`; everything else is in pyproject.toml.

They are committed once, under notebooks/release. A wheel has no place outside its packages, so they are copied
while it is built; in a checkout (editable install) `autograder.cli.jupyterlab.starting` finds them where they are
committed.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

RELEASE = Path("notebooks", "release")


class BuildWithNotebooks(build_py):
    def _release_files(self) -> dict[str, str]:
        """Built file → its source, for every release notebook and what lies beside it."""
        files = [path for path in sorted(RELEASE.rglob("*")) if path.is_file()]
        files = [path for path in files if not any(part.startswith(".") for part in path.parts)]
        target = Path(self.build_lib, "autograder", "release")
        return {str(target / path.relative_to(RELEASE)): str(path) for path in files}

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for target, source in self._release_files().items():
                self.mkpath(str(Path(target).parent))
                self.copy_file(source, target)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        extra = [] if self.editable_mode else list(self._release_files())
        return [*super().get_outputs(include_bytecode), *extra]


setup(cmdclass={"build_py": BuildWithNotebooks})
