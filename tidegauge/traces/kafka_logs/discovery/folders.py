"""Look into the folders of what was named: each once, and nothing that a link leads out to.

Rules of this file

1. Whoever sends logs does not choose which other files are read: a link is followed only if it leads to something below the
   directory that was named, unless the user asks for it (--follow-links). The named path itself may be a link.
2. A folder is known by its device and inode: a link that leads up, or to a brother, is not read as another node.
3. What cannot be read, and what is not followed, is a problem; everything else is read.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from tidegauge.traces.problems import Problem
from tidegauge.util.input_limits import follows_links


def leads_out(path: Path, root: Path) -> bool:
    """Return whether a path below `root` is, through a link, something that is not below it, and must not be read."""
    return not follows_links() and Path(os.path.realpath(root)) not in Path(os.path.realpath(path)).parents


class FolderWalk:
    """The folders at and below `root`; `left_out` are the problems with those that were not read, by path."""

    def __init__(self, root: Path) -> None:
        """Begin with no folder entered."""
        self.root = root
        self.left_out: dict[str, Problem] = {}
        self._entered: set[tuple[int, int]] = set()

    def entries(self, folder: Path) -> list[Path]:
        """Return what is in a folder, by name, links last, without links that lead out; nothing if it cannot be read."""
        try:
            directory_entries = sorted(os.scandir(folder), key=lambda entry: (entry.is_symlink(), entry.name))
        except OSError as error:
            do = "check its permissions, or copy it again; the rest is read"
            self._leave_out(
                folder, Problem(str(folder), None, "a folder that can be read", error.strerror or str(error), do)
            )
            return []
        paths = []
        for entry in directory_entries:
            path = folder / entry.name
            if entry.is_symlink() and leads_out(path, self.root):
                # Of other files nothing is read here; whoever reads a checkpoint says so.
                if path.is_dir() or path.suffix == ".out" or ".log" in path.name:
                    do = "name what it leads to as well, or use --follow-links if you trust who made it"
                    self._leave_out(path, Problem(str(path), None, "no link that leads out of what was named", "one", do))
            else:
                paths.append(path)
        return paths

    def below(self, deepest: int, *, hidden: bool = False) -> Iterator[tuple[Path, list[Path]]]:
        """Yield `root` and each folder below it with the files in it, level by level, down to `deepest` levels below.

        `hidden` ones, whose name begins with a dot, are entered only if that is asked for.
        """
        self.enter(self.root)
        folders = [(self.root, 0)]
        while folders:
            folder, depth = folders.pop(0)
            entries = self.entries(folder)
            yield folder, [entry for entry in entries if entry.is_file()]
            if depth < deepest:
                visible = [entry for entry in entries if hidden or not entry.name.startswith(".")]
                folders += [(entry, depth + 1) for entry in visible if self.enter(entry)]

    def folders(self, folder: Path) -> list[Path]:
        """Return the folders in a folder that were not entered yet, and enter them."""
        return [path for path in self.entries(folder) if self.enter(path)]

    def enter(self, folder: Path) -> bool:
        """Enter a path; return whether it is a folder that was not entered before."""
        try:
            if not folder.is_dir():
                return False
            status = folder.stat()
        except OSError:  # a link to itself, or a path that is too long
            return False
        identity = (status.st_dev, status.st_ino)
        is_new = identity not in self._entered
        self._entered.add(identity)
        return is_new

    def _leave_out(self, path: Path, problem: Problem) -> None:
        """Note the problem of a path that is not read, under its path below `root`."""
        # A dangling link is nothing that could have been read.
        if os.path.lexists(path) and (not path.is_symlink() or os.path.exists(path)):  # noqa: PTH110  no error for a path too long
            below = str(path.relative_to(self.root)) if path != self.root else str(path)
            self.left_out.setdefault(below, Problem(below, None, problem.expected, problem.seen, problem.do))
