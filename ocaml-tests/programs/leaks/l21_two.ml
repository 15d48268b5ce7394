let t0 = Unix.gettimeofday ()
let now () = Unix.gettimeofday () -. t0
let d = try float_of_string Sys.argv.(1) with _ -> 60.
let scratch i = ignore (Sys.opaque_identity (String.concat "," (List.init 40 (fun j -> string_of_int (i + j)))))
let serve rate f =
  let i = ref 0 in
  while now () < d do
    while float !i < rate *. now () do incr i; scratch !i; f !i done;
    Unix.sleepf 0.01
  done

type user = { id : int; name : string; mutable visits : int list }
let by_id : (int, user) Hashtbl.t = Hashtbl.create 16
let by_name : (string, user) Hashtbl.t = Hashtbl.create 16
let () = serve 700. (fun i ->
  let u = { id = i; name = "n" ^ string_of_int i; visits = [ i; i + 1; i + 2; i + 3; i + 4; i + 5; i + 6 ] } in
  Hashtbl.replace by_id i u; Hashtbl.replace by_name u.name u)
