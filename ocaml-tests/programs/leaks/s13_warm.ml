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
(* STEADY: the last 10,000 results; full after 5 s *)
let last = Array.make 10_000 Bytes.empty
let () = serve 2000. (fun i -> last.(i mod 10_000) <- Bytes.create 400)
