"""Collect what breaks a promise, with the kit that must say so and its message."""


def collector():
    """Return a list, and a decorator that adds to it: kit, name, maker, arguments and message."""
    kits = []

    def wrong(kit, message, *args, **options):
        """Collect a faulty factory; the kit gets its result as its first argument."""

        def collect(make):
            kits.append((kit, make.__name__, make, args, options, message))
            return make

        return collect

    return kits, wrong
