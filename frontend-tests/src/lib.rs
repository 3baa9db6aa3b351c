//! Nothing but the folder that the tests stand in: those of the package `keyway`, from outside, by what it makes public.
