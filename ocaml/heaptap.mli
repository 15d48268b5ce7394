(** Labels for what a program is doing, in its heaptap traces; snapshots of its heap; and probes,
    quantities of its own.

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

val command : string -> (string, string) result
(** [command line] carries out a command of the control socket, for programs that have an endpoint of their
    own for such things: [command "start /tmp/leak.ctf 1e-4"], [command "stop"], [command "status"],
    [command "mark deployed"], [command "flush"]. Returns what the socket would answer behind [ok], or why the command
    failed. A space within a word is written as [%20].

    The program must be traced, or listen for commands ([HEAPTAP_LISTEN=1]). It waits until the command is done:
    meanwhile no other thread runs OCaml code. *)

(** {1 Probes}

    Quantities of the program's own, beside its memory: [heaptap top], [heaptap probes] and the
    viewer show them over time. The tracer records what changed ten times a second, so the
    number of calls does not matter. Parts of a name are separated by [/] and shown as a tree.
    The same name gives the same probe. There are at most 4,096: name kinds of work, not single
    requests. *)

type point
(** Counts how often the program passes. *)

val point : string -> point
val pass : point -> unit
(** One pass: a few nanoseconds. Exact, whatever number of threads and domains pass. *)

val pass_n : point -> int -> unit
(** So many passes at once. *)

type timer
(** Measures time. Intervals may overlap, in one thread or several; all are added up. *)

val timer : string -> timer
val start : timer -> unit
val stop : timer -> unit
(** Without a [start] before it, nothing. *)

val time : timer -> (unit -> 'a) -> 'a
(** [time timer f] is [f ()], and measures it, even if it raises. A function is measured by
    [let parse text = Heaptap.time parsing (fun () -> parse text)]. *)

type value
(** A number that changes. The last, least and greatest of each tenth of a second are recorded. *)

val value : string -> value
val set : value -> float -> unit
val set_int : value -> int -> unit

type text
(** A text that changes, of which 1,024 bytes are kept. *)

val text : string -> text
val set_text : text -> string -> unit

val observe : string -> (unit -> float) -> unit
(** [observe name f] records what [f] returns, up to ten times a second: after minor collections, where
    OCaml runs finalisers. While the program allocates nothing, [f] is not called. [f] should be
    short; if it raises, it is called no more, and the log says so. *)

val observe_hashtbl : string -> ('a, 'b) Hashtbl.t -> unit
(** [observe_hashtbl name table] records {!Hashtbl.stats} as [name/bindings], [name/buckets],
    [name/empty buckets], [name/longest bucket] and [name/filled], the part of buckets that are not
    empty, until the table is collected: it is not kept alive. Each time takes as long as
    {!Hashtbl.stats}. *)

type tag
(** Marks values, and counts which of them are alive. *)

val tag : string -> tag

val mark : tag -> 'a -> 'a
(** [mark tag v] is [v], which is counted as live until the collector finds it dead. What the live values of
    a tag reach is measured too, after major collections, each block once. Integers and constants are
    not counted. A value that is marked twice is counted twice. *)

val log : string -> unit
(** Adds a line, of at most 1,024 bytes, to the log. *)

val logf : ('a, unit, string, unit) format4 -> 'a
(** The same, with a format. When the program is not traced, nothing is formatted, but the format is still
    walked to skip its arguments: 96 instructions with one argument. {!log_with} takes 24. *)

val log_with : ((('a, unit, string, unit) format4 -> 'a) -> unit) -> unit
(** [log_with (fun line -> line "served %d" n)] adds the line that the function formats. When the program is
    not traced, the function is not called. *)

val pause_here : string -> unit
(** Views of the running program stop at this moment, and show the text. The program runs on. *)
