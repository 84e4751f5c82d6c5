"""Where things are kept: adapters that touch the disk, so that nothing below them has to."""
