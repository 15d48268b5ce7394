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
(* STEADY: lives with a heavy tail, at most 15 s *)
let ends : (int, bytes list) Hashtbl.t = Hashtbl.create 16
let () = serve 2000. (fun i ->
  let life = min 30_000 (int_of_float (400. /. (Random.float 1. +. 1e-3))) in
  let e = i + life in
  Hashtbl.replace ends e (Bytes.create 200 :: (try Hashtbl.find ends e with Not_found -> []));
  Hashtbl.remove ends i)
