"""Arrays, parameters, threads, progress and files: helpers of any numerical library.

Imports nothing of this package; provides helpers independent of structured prediction.
"""
