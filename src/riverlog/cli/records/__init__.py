"""Records as people type and see them: lines, JSON, formats, and the loops that read and write them."""
