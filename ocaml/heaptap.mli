(** Labels for what a program is doing, in its heaptap traces, and snapshots of its heap.

    Everything allocated under a label has it as the outermost frame of its backtrace:
    [heaptap report --label] selects by it, and every other reader shows it. Each thread
    has its own label; a new thread or domain has none.

    When the program is not traced, every function here costs one test and does nothing
    else. *)

type label
(** A name that is known to the tracer. *)

val none : label
(** No label. *)

val label : string -> label
(** [label name] is the label with this name, of which at most 1,024 bytes are used. The
    tracer keeps 65,535 names: label kinds of work, not single requests. Takes a lock
    briefly. In hot code create labels once and use {!within}. *)

val with_label : string -> (unit -> 'a) -> 'a
(** [with_label name f] is [f ()] under the label with this name. Restores the previous
    label when [f] returns or raises. If an effect may suspend [f], see {!resuming} and
    [Heaptap_fibers]. *)

val within : label -> (unit -> 'a) -> 'a
(** Like {!with_label}, with a label that exists already. *)

val current : unit -> label
(** The label of the calling thread. *)

val set_label : label -> unit
(** Sets the label of the calling thread. *)

val swap_label : label -> label
(** Like {!set_label}; returns the previous label. *)

val resuming : ('a -> 'b) -> 'a -> 'b
(** For schedulers of fibers. [resuming resume] is a function that sets the label that is
    current at the call of [resuming] and then calls [resume]. So a fiber that performs an
    effect continues under its own label if the handler stores [resuming (continue k)] to
    resume it. The scheduler itself must set its label when it starts a fiber. *)

val snapshot : ?file:string -> unit -> (string, string) result
(** [snapshot ~file ()] takes a snapshot of the heap into [file], which is replaced only if it is a snapshot.
    Without [file], the name is the next one of [HEAPTAP_SNAPSHOT_FILE]: by default
    [PROGRAM-PID-N.heap] beside the trace. Returns the file's name when the file is complete, or why there is none.

    The program must be traced, or listen for commands ([HEAPTAP_LISTEN=1]). It waits until the file is
    written: meanwhile no other thread runs OCaml code. *)
