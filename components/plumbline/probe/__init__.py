"""What probes print, and what follows from it: parsers from text to facts, and verdicts over them. Nothing here asks
anybody; a text that is cut, garbled or empty gives fewer facts, and never a better verdict.
"""
