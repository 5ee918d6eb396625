"""All that names private API of torch: the table of these, and the hooks and changes made with it."""
