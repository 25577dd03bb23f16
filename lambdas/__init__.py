"""AWS entry points, a module a function: parse, call the library, answer."""
