"""The course as a site on this machine: a front page, and the chapters behind a guard.

front     the table of contents as HTML, also of the export;   site    who answers what
policy    what a page of marimo may load;                      files/  the style of the front page, the bar of a chapter
"""
