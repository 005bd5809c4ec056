"""Ways to run a formula. Each engine reads the algebra and knows no other engine; `plan` chooses among them."""
