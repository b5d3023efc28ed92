//! Tablespace structure: FSP header, extent descriptors, segments (see the fsp helper).
