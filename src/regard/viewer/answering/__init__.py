"""Questions and answers: the one protocol of the server, the widget and the exported page."""
