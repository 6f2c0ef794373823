"""What the kits besides check_structure must find: all that the modules named here collect."""

import wrong_backends
import wrong_readers
import wrong_solvers
import wrong_tasks

KITS = wrong_backends.KITS + wrong_tasks.KITS + wrong_solvers.KITS + wrong_readers.KITS
