(* ephemerons ROUNDS: domains with ephemerons and finalisers end at about the same time. With OCaml 5.3.0 and
   OCAMLRUNPARAM=s=4k it often hangs, traced or not (docs/ocaml.md), so no scenario runs it. *)
let finalised = Atomic.make 0

let work size () =
  let table = Array.make 64 (Ephemeron.K1.make (ref 0) [ 0 ]) in
  for k = 1 to 600 * size do
    let key = ref k in
    table.(k mod 64) <- Ephemeron.K1.make key [ k; k ];
    if k mod 10 = 0 then
      Gc.finalise (fun key -> ignore (Sys.opaque_identity (string_of_int !key)); Atomic.incr finalised) key;
    ignore (Sys.opaque_identity (List.init 10 string_of_int))
  done

let () =
  for _ = 1 to int_of_string Sys.argv.(1) do
    let domains = List.init 4 (fun i -> Domain.spawn (work (1 + (i mod 2)))) in
    work 2 ();
    List.iter Domain.join domains
  done
