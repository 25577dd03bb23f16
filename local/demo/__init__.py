"""The main job, as a new user would do it: real flights in, ordered pages out, compared with the file."""
