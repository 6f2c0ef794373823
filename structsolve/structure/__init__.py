"""Layer 3: what a structure declares (oracle, parts, projection, loss), and how it is asked.

Takes packed examples; hands on native operators over part scores, made by plugins or by adapters of
Python classes.
"""
