type label = int

external is_here : unit -> bool = "heaptap_ocaml_is_here" [@@noalloc]
external intern : string -> label = "heaptap_ocaml_label" [@@noalloc]
external swap : (int[@untagged]) -> (int[@untagged]) = "heaptap_ocaml_swap_bytecode" "heaptap_ocaml_swap" [@@noalloc]
external take_snapshot : string -> (string, string) result = "heaptap_ocaml_snapshot"

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
