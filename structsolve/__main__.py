# python -m structsolve, and the command.
import sys


def main() -> int:
    """Run the command line, where Ctrl-C may come while NumPy is imported.

    Returns
    -------
    int
        The exit status, as of `structsolve.cli.main.main`.
    """
    try:
        from structsolve.cli.main import main as run  # heavy

        return run()
    except KeyboardInterrupt:
        print("structsolve: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
