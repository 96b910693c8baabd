"""The watch page: running games live in a browser (`live`), or a recorded one (`page`)."""
