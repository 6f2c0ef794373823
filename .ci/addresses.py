"""Write where a repository lies into what is released from it: its addresses, absolute links.

The tree names no host, so that a fork's release names the fork.  What the package index shows of a
release is made complete by the workflow that builds it:

    python .ci/addresses.py OWNER/NAME v0.1.0

adds ``[project.urls]`` to pyproject.toml, and makes the README's links into the tree absolute, to
the files and pictures of that tag.
"""

import re
import sys
from pathlib import Path

LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<path>[^():#]+)(?P<rest>#[^)]*)?\)")


def urls(repository: str) -> str:
    """Return the table of addresses, as TOML."""
    owner, name = repository.split("/")
    home = f"https://github.com/{repository}"
    return (
        "[project.urls]\n"
        f'Homepage = "{home}"\n'
        f'Documentation = "https://{owner.lower()}.github.io/{name}/"\n'
        f'Changelog = "{home}/blob/main/CHANGELOG.md"\n'
        f'Issues = "{home}/issues"\n'
    )


def absolute(readme: str, repository: str, tag: str, root: Path) -> str:
    """Return a README whose links into the tree hold anywhere."""

    def link(match: re.Match[str]) -> str:
        path, rest = match["path"], match["rest"] or ""
        if not (root / path).exists():
            raise SystemExit(f"README.md: found a link to {path}, which is not in the tree")
        view = "raw" if match["picture"] else "tree" if (root / path).is_dir() else "blob"
        place = f"https://github.com/{repository}/{view}/{tag}/{path}{rest}"
        return f"{match['picture']}[{match['text']}]({place})"

    return LINK.sub(link, readme)


def main(repository: str, tag: str) -> None:
    """Edit the two files of the tree that this file is in."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise SystemExit(f"repository: found {repository!r}, expected OWNER/NAME")
    root = Path(__file__).resolve().parent.parent
    project, readme = root / "pyproject.toml", root / "README.md"
    text = project.read_text("utf-8")
    if "[project.urls]" in text:
        raise SystemExit("pyproject.toml: found [project.urls], expected none: it is added here")
    start = text.index("[project.optional-dependencies]")
    project.write_text(text[:start] + urls(repository) + "\n" + text[start:], "utf-8")
    readme.write_text(absolute(readme.read_text("utf-8"), repository, tag, root), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(f"usage: {sys.argv[0]} OWNER/NAME TAG")
    main(*sys.argv[1:])
