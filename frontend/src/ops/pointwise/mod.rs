//! Ops that work on each element by itself.

crate::ops::family! {
    add,
    div,
    eq,
    exp,
    ge,
    gt,
    le,
    lt,
    mul,
    ne,
    sub,
    where_,
}
