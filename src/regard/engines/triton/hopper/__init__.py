"""The kernels for Hopper chips, in Gluon: a warp that loads tiles, warpgroups that multiply them."""
