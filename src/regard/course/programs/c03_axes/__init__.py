"""Mahalanobis distance, by three ways to whiten, in three languages."""
