"""All that names private API of torch: the table of touchpoints, and the hooks and changes made with it."""
