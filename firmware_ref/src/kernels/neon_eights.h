/* What layers.h wants of the NEON kernels. */

#define LANES       8
#define sums        neon_sums
#define activations neon_activations
#define way         neon_way
#define way_of      neon_way_of
#define none        neon_none
#define set         neon_set
#define load        neon_load
#define keep        neon_keep
#define add         neon_add
#define subtract    neon_subtract
#define activate    neon_activate
#define fold_in     neon_fold_in
#define which       neon_which

/* And of each by itself. */
#define rows       NAME(rows)
#define rows_room  NAME(rows_room)
#define take_rows  NAME(take_rows)
#define take_start NAME(take_start)
#define sum_inputs NAME(sum_inputs)
#define store      NAME(store)
#define transpose  NAME(transpose)
