"""Chapter 12: a recurrent net three times, and how far its gradient reaches."""
