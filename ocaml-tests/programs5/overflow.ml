(* A stack that overflows is an exception: in the main fiber, in fibers within fibers,
   in other domains, whatever allocates near its end. *)
let rec deep n = 1 + deep (n + 1) + List.length (Sys.opaque_identity [ n; n + 1 ])
let rec deep_in_c n = 1 + String.length (string_of_int (deep_in_c (n + 1)))

let rec allocating n =
  let l = Sys.opaque_identity [ n; n + 1 ] in
  1 + allocating (n + 1) + List.length l

let rec allocating_in_c n =
  let s = string_of_int (Sys.opaque_identity n) in
  1 + allocating_in_c (n + 1) + String.length s

let attempt name f =
  match f 0 with
  | _ -> assert false
  | exception Stack_overflow -> Printf.sprintf "%s caught" name

let all () =
  [ attempt "deep" deep; attempt "deep_in_c" deep_in_c; attempt "allocating" allocating;
    attempt "allocating_in_c" allocating_in_c ]

let () =
  let say = List.iter print_endline in
  for _ = 1 to 2 do
    say (all ());
    say (Fibers.through 3 all);
    say (Domain.join (Domain.spawn all))
  done;
  Check.finish ()
