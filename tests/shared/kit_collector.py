"""Collect what breaks a promise, with the kit that must say so and its message."""

#: Kit, name of the fault, what makes it, and the message that it must be met with.
KITS = []


def wrong(kit, message, *args, **options):
    """Collect a faulty factory; the kit gets its result as its first argument."""

    def collect(make):
        KITS.append((kit, make.__name__, make, args, options, message))
        return make

    return collect
