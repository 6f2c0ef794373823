"""Files that tests of readers write."""

from hypothesis import HealthCheck, settings

#: Examples of hypothesis write to one folder, one after the other.
same_folder = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)


def put(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
