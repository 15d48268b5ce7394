type label = int

external is_here : unit -> bool = "heaptap_ocaml_is_here" [@@noalloc]
external intern : string -> label = "heaptap_ocaml_label" [@@noalloc]
external swap : (int[@untagged]) -> (int[@untagged]) = "heaptap_ocaml_swap_bytecode" "heaptap_ocaml_swap" [@@noalloc]
external take_snapshot : string -> (string, string) result = "heaptap_ocaml_snapshot"
external run_command : string -> (string, string) result = "heaptap_ocaml_command"

(* The tracer is loaded before the program starts, or never. *)
let here = is_here ()
let none = 0
let label name = if here then intern name else none
let swap_label label = if here then swap label else none
let set_label label = if here then ignore (swap label : label)

let current () =
  if here then begin
    let label = swap none in
    ignore (swap label : label);
    label
  end
  else none

let within label f =
  if not here then f ()
  else
    let before = swap label in
    match f () with
    | result ->
        set_label before;
        result
    | exception exn ->
        let backtrace = Printexc.get_raw_backtrace () in
        set_label before;
        Printexc.raise_with_backtrace exn backtrace

let with_label name f = if here then within (intern name) f else f ()

let resuming resume =
  if not here then resume
  else
    let label = current () in
    fun value ->
      set_label label;
      resume value

let snapshot ?(file = "") () =
  (* C would see another name. *)
  if String.contains file '\000' then Error "a file's name cannot contain a NUL" else take_snapshot file

let command line =
  if String.contains line '\000' then Error "a command cannot contain a NUL" else run_command line

(* Probes: the address of the tracer's memory, or 0. *)
type point = int
type timer = int
type value = int
type text = int
type tag = int

external open_probe : int -> string -> int = "heaptap_ocaml_probe" [@@noalloc]

external add : (int[@untagged]) -> (int[@untagged]) -> unit
  = "heaptap_ocaml_pass_bytecode" "heaptap_ocaml_pass"
[@@noalloc]

external set_number : (int[@untagged]) -> (float[@unboxed]) -> unit
  = "heaptap_ocaml_set_bytecode" "heaptap_ocaml_set"
[@@noalloc]

external set_string : int -> string -> unit = "heaptap_ocaml_set_text" [@@noalloc]

external switch_timer : (int[@untagged]) -> (int[@untagged]) -> unit
  = "heaptap_ocaml_timer_bytecode" "heaptap_ocaml_timer"
[@@noalloc]

external mark_block : (int[@untagged]) -> 'a -> unit
  = "heaptap_ocaml_mark_bytecode" "heaptap_ocaml_mark"
[@@noalloc]

external has_probes : unit -> bool = "heaptap_ocaml_has_probes" [@@noalloc]
external note : bool -> string -> unit = "heaptap_ocaml_note" [@@noalloc]
external is_due : unit -> bool = "heaptap_ocaml_is_due" [@@noalloc]

(* Numbers of kinds in include/heaptap.h. *)
let point name = open_probe 0 name
let timer name = open_probe 1 name
let value name = open_probe 2 name
let text name = open_probe 3 name
let tag name = open_probe 4 name
let probed = has_probes ()
let pass point = if point <> 0 then add point 1
let pass_n point n = if point <> 0 then add point n
let set value number = if value <> 0 then set_number value number
let set_int value number = if value <> 0 then set_number value (float_of_int number)
let set_text text string = if text <> 0 then set_string text string
let start timer = if timer <> 0 then switch_timer timer 1
let stop timer = if timer <> 0 then switch_timer timer 0

let time timer f =
  if timer = 0 then f ()
  else begin
    switch_timer timer 1;
    match f () with
    | result ->
        switch_timer timer 0;
        result
    | exception exn ->
        let backtrace = Printexc.get_raw_backtrace () in
        switch_timer timer 0;
        Printexc.raise_with_backtrace exn backtrace
  end

let mark tag block =
  if tag <> 0 then mark_block tag block;
  block

let log line = if probed then note false line
let logf format = if probed then Printf.ksprintf log format else Printf.ikfprintf ignore () format
let log_with say = if probed then say (fun format -> Printf.ksprintf log format)
let pause_here why = if probed then note true why

(* Functions that are called a few times a second; each returns whether it is to be called again. *)
let observers : (unit -> bool) list Atomic.t = Atomic.make []

let rec change_observers change =
  let before = Atomic.get observers in
  if not (Atomic.compare_and_set observers before (change before)) then change_observers change

let observe_all () =
  List.iter
    (fun observer ->
      let again =
        try observer ()
        with exn ->
          log ("heaptap: an observed function is called no more: it raised " ^ Printexc.to_string exn);
          false
      in
      if not again then change_observers (List.filter (fun other -> other != observer)))
    (Atomic.get observers)

(* A young block that nothing refers to dies in the next minor collection, and its finaliser runs where
   OCaml code may run. *)
let rec await_collection () = Gc.finalise_last after_collection (ref 0)

and after_collection () =
  if is_due () then observe_all ();
  if Atomic.get observers <> [] then await_collection ()

let add_observer observer =
  let first = Atomic.get observers = [] in
  change_observers (fun others -> observer :: others);
  if first then await_collection ()

let observe name f =
  if probed then begin
    let value = value name in
    add_observer (fun () ->
        set value (f ());
        true)
  end

let observe_hashtbl name table =
  if probed then begin
    let weak = Weak.create 1 in
    Weak.set weak 0 (Some table);
    let value field = value (name ^ "/" ^ field) in
    let bindings = value "bindings" and buckets = value "buckets" and empty = value "empty buckets" in
    let longest = value "longest bucket" and filled = value "filled" in
    add_observer (fun () ->
        match Weak.get weak 0 with
        | None -> false
        | Some table ->
            let { Hashtbl.num_bindings; num_buckets; max_bucket_length; bucket_histogram } = Hashtbl.stats table in
            let without = if Array.length bucket_histogram > 0 then bucket_histogram.(0) else 0 in
            set_int bindings num_bindings;
            set_int buckets num_buckets;
            set_int empty without;
            set_int longest max_bucket_length;
            if num_buckets > 0 then set filled (1. -. (float_of_int without /. float_of_int num_buckets));
            true)
  end
