(* A stack that overflows is an exception, whatever allocates near its end.

   Where it ends within an allocation of OCaml code, the collector counts the
   words, though the exception comes before there is a block: the pointer of the
   young heap was lowered already when caml_call_gc (runtime/amd64.S) touches the
   stack ahead. That can happen in [deep] and [allocating], by 6 words each time;
   where the stack ends in List.length instead, which only looks whether there is
   something to do, nothing is counted. *)
let rec deep n = 1 + deep (n + 1) + List.length (Sys.opaque_identity [ n; n + 1 ])
let rec deep_in_c n = 1 + String.length (string_of_int (deep_in_c (n + 1)))

let rec allocating n =
  let l = Sys.opaque_identity [ n; n + 1 ] in
  1 + allocating (n + 1) + List.length l

let rec allocating_in_c n =
  let s = string_of_int (Sys.opaque_identity n) in
  1 + allocating_in_c (n + 1) + String.length s

let () =
  let attempt name f =
    match f 0 with
    | _ -> assert false
    | exception Stack_overflow -> Printf.printf "%s caught\n" name
  in
  for _ = 1 to 5 do
    attempt "deep" deep;
    attempt "deep_in_c" deep_in_c;
    attempt "allocating" allocating;
    attempt "allocating_in_c" allocating_in_c
  done;
  Check.finish ()
