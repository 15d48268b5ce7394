let t0 = Unix.gettimeofday ()
let now () = Unix.gettimeofday () -. t0
let scratch i = String.concat "," (List.init 30 (fun j -> string_of_int (i + j)))
(* sessions: what every server has, blocks that live for some seconds *)
let ring = Array.make 4000 ""
let serve rate f =
  let d = try float_of_string Sys.argv.(1) with _ -> 60. in
  let i = ref 0 in
  while now () < d do
    while float !i < rate *. now () do
      incr i; let s = scratch !i in if !i mod 4 = 0 then ring.(!i / 4 mod 4000) <- s; f !i done;
    Unix.sleepf 0.005
  done
(* STEADY: busy and quiet times, 12 s each; what is allocated lives 2 s *)
let live = Queue.create ()
let () = serve 2000. (fun i ->
  let busy = 1. +. sin (now () *. 6.283 /. 12.) in
  for _ = 1 to int_of_float (busy *. 2.) do Queue.push (now (), Bytes.create 300) live done;
  while (not (Queue.is_empty live)) && fst (Queue.peek live) < now () -. 2. do ignore (Queue.pop live) done;
  ignore i)
