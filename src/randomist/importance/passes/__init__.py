"""The hot loops behind one seam.

Histories call these and nothing else that is compiled. Another backend is one module with the same functions.
"""
