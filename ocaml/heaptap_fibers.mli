(** Labels for fibers of any scheduler (OCaml 5). *)

val with_label : string -> (unit -> 'a) -> 'a
(** Like [Heaptap.with_label], for a function that performs effects which suspend it. While
    it is suspended, its label does not apply to what runs instead. When it continues, in
    whichever thread or domain, it has its label again. The scheduler need not cooperate.

    Costs a fiber, and one more handler for each effect. When the program is not traced,
    [with_label name f] is [f ()]. *)

val within : Heaptap.label -> (unit -> 'a) -> 'a
(** Like {!with_label}, with a label that exists already. *)
