"""Who is told of a run as it goes: tables, pictures, samples, the terminal."""
