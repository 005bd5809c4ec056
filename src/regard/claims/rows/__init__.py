"""The rows of the ledger: claims about s_ij, about w_ij, about y_i, and about the programs that compute them."""
