(* Exhausts the stack over and over and catches the exception. *)
let rec deep n = if n = 0 then [ 0 ] else n :: deep (n - 1)
let rec sink n = 1 + sink (n + 1)

let () =
  let rounds = int_of_string Sys.argv.(1) in
  let caught = ref 0 and sum = ref 0 in
  for round = 1 to rounds do
    (try ignore (sink 0) with Stack_overflow -> incr caught);
    (try ignore (deep 10_000_000) with Stack_overflow -> incr caught);
    sum := !sum + List.length (deep (round mod 1000))
  done;
  Printf.printf "%d %d\n" !caught !sum
