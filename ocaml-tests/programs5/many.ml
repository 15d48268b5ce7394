(* One kind of work in several domains: many WORK DOMAINS. *)
let works =
  [ ("trees", Trees.run); ("comings", Comings.run); ("fibers", Fibers.run); ("threads", Threads_within.run);
    ("resizing", Resizing.run); ("compaction", Compaction.run); ("marshalling", Marshalling.run);
    ("weak", Weaklings.run); ("outside", Outside.run); ("locals", Locals.run); ("calls", Calls.run);
    ("raising", Raising.run); ("turns", Turns.run) ]

let () =
  let result = (List.assoc Sys.argv.(1) works) (int_of_string Sys.argv.(2)) in
  Printf.printf "%s: %d\n" Sys.argv.(1) result;
  Check.finish ()
