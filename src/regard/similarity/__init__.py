"""The road from similarity to attention on one photograph: `regard similarity`.

chain    what each step says of the same query patch: numbers
picture  the same as one picture
"""
