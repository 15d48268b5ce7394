(** Names for what a program is doing, in its heaptap traces.

    Everything allocated under a label has it as the outermost frame of its backtrace:
    [heaptap report --label] selects by it, and every other reader shows it. Each thread
    has its own label; a new thread or domain has none.

    When the program is not traced all of this does nothing, at the cost of a test. *)

type label
(** A name the tracer knows. *)

val none : label
(** No name. *)

val label : string -> label
(** The label of this name; names are cut after 1,024 bytes. The tracer keeps 65,535
    names: name kinds of work, not each request. Takes a lock for a moment: where it
    counts, make labels once and use {!within}. *)

val with_label : string -> (unit -> 'a) -> 'a
(** [with_label name f] is [f ()] under the label of this name. At its end, or if it
    raises, the label is the one before again. If [f] may be suspended by an effect, see
    {!resuming} and [Heaptap_fibers]. *)

val within : label -> (unit -> 'a) -> 'a
(** As {!with_label}. *)

val current : unit -> label
(** The calling thread's label. *)

val set_label : label -> unit
(** From now on the calling thread has this label. *)

val swap_label : label -> label
(** As {!set_label}; returns the label before. *)

val resuming : ('a -> 'b) -> 'a -> 'b
(** For schedulers of fibers. [resuming resume] is [resume] that first sets the label that
    is current now, when [resuming] is called: a fiber that performs an effect goes on
    under its own label if the handler keeps [resuming (continue k)] to resume it. The
    scheduler's own label is what it sets when it starts a fiber. *)
