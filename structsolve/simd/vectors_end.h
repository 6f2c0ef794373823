/* Forgets the names of one kind of vectors, so that the loops can be included for the next. */
#undef NAME
#undef VEC
#undef MASK
#undef LANES
#undef LOAD
#undef STORE
#undef SET1
#undef ADD
#undef SUB
#undef MUL
#undef MULADD
#undef MINV
#undef MAXV
#undef PICK
#undef EQUAL_BITS
