"""Packages that test_plugins_installed.py installs; nothing here is a test of ours."""

collect_ignore_glob = ["*"]
