"""Several heads, three times: a loop, and one product for all of them."""
