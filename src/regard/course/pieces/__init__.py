"""What a page of the course is put together from: HTML that reads the same with Python behind it and without.

piece    a part of the page, live and still;   prose      Markdown with mathematics
code     Python, coloured;                     programs   one thing in three languages, run and compared
"""
