"""What the kits besides check_structure must find: all that the modules named here collect."""

import wrong_backends  # noqa: F401
import wrong_readers  # noqa: F401
import wrong_solvers  # noqa: F401
import wrong_tasks  # noqa: F401
from kit_collector import KITS as KITS
