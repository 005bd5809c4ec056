"""A lens on the disk: safetensors and JSON, written whole or not at all, mapped when it is opened."""
