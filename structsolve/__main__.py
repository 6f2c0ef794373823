# python -m structsolve
import sys

from structsolve.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
