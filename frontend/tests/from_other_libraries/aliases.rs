//! Names of the tables that rustdoc's search must find.
