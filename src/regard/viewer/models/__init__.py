"""Models for the lens to run: found by name or path, and read from this machine alone.

    finding     minilm, smollm2, or a PATH;  live: what a server asks of a model
    pretrained  folders of transformers, and .gguf files;  trained: runs of `regard train`
    seeing      images, for a model that reads them or as raw patches

Nothing is fetched from a hub, no pickle is read, and no code that comes with a model is run.
"""
