"""How many tokens a head reads, in three languages."""
