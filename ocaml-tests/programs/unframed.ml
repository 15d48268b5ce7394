(* Bounds errors while signals come, until its input ends. Compiled without -g, so that they come from code without frame
   descriptors: a collection there would crash. *)
let has_input () = match Unix.select [ Unix.stdin ] [] [] 0. with [], _, _ -> false | _ -> true
let array = Array.make 5 0

(* It allocates hardly ever, and fails often. *)
let work () =
  let caught = ref 0 in
  for i = 1 to 2_000 do
    try array.(Sys.opaque_identity (4 + i)) <- i with Invalid_argument _ -> incr caught
  done;
  ignore (Sys.opaque_identity (Array.make 200 0));
  !caught

let rec patient f = try f () with Unix.Unix_error (Unix.EINTR, _, _) -> patient f

let () =
  let rung = ref 0 in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle (fun _ -> incr rung));
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.0002; it_value = 0.0002 });
  print_endline "ready";
  let right = ref true in
  while not (patient has_input) do
    right := !right && work () = 2_000
  done;
  Printf.printf "right %b, rung %b\n" !right (!rung > 0)
