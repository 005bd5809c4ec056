"""The parts of bench/gpu.py: formulas, cases, peers, measuring, checking, tables, picture."""
