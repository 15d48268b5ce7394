(** Labels for fibers of any scheduler (OCaml 5). *)

val with_label : string -> (unit -> 'a) -> 'a
(** As [Heaptap.with_label], for a function that performs effects which suspend it: while
    it is suspended the label is that of whoever runs, and when it goes on, in whatever
    thread or domain, its own. The scheduler need not know.

    Costs a fiber, and for each effect a step through it. When the program is not traced,
    [with_label name f] is [f ()]. *)

val within : Heaptap.label -> (unit -> 'a) -> 'a
(** As {!with_label}. *)
