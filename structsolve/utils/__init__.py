"""Arrays, parameters, threads, progress and files: what any numerical library needs.

Takes nothing of this package; hands on helpers that know nothing of structured prediction.
"""
