(* Garbage that points to blocks that are gone. A domain leaves arrays of boxed numbers that nobody holds. Halfway through its
   end, when it takes part in no collection any more but still has its heap, a major cycle begins: OCaml 5.3.0 does not sweep that
   heap in it (ocaml/ocaml#14025). The first domain takes pools with the numbers over, and sweeps these; the arrays stay, and the
   next cycle takes them for new. *)
external stop_in_the_end : unit -> unit = "unswept_stop_in_the_end"
external has_stopped : unit -> bool = "unswept_has_stopped"
external go_on : unit -> unit = "unswept_go_on"

let data = Marshal.to_string (Array.init 2_000 (fun i -> Some (float i))) []
let arrays count = List.init count (fun _ : float option array -> Marshal.from_string data 0)

let leave_garbage () =
  stop_in_the_end ();
  let held = ref (arrays 20) in
  (* The cycle in which they are marked ends with the next. *)
  Gc.full_major ();
  ignore (Sys.opaque_identity !held);
  held := [];
  Gc.major ()

let kept =
  let domain = Domain.spawn leave_garbage in
  while not (has_stopped ()) do
    Domain.cpu_relax ()
  done;
  Gc.major ();
  go_on ();
  Domain.join domain;
  (* Less than the pools of the other have room for. *)
  let kept = arrays 5 in
  Gc.major ();
  kept

let () = Printf.printf "%d\n" (List.length (Sys.opaque_identity kept))
