(* A service with 200 MB that leaks 1 MB a second: what doctor_cost.py looks at. *)

let began = Unix.gettimeofday ()
let now () = Unix.gettimeofday () -. began
let base = Array.init 400_000 (fun i -> (i, String.make 400 'b', [ i; i + 1 ]))
let log : (int, bytes) Hashtbl.t = Hashtbl.create 16
let record i = Hashtbl.replace log i (Bytes.create 400)
let work i = ignore (Sys.opaque_identity (String.concat "," (List.init 40 (fun j -> string_of_int (i + j)))))

let () =
  let served = ref 0 in
  while now () < 600. do
    while float !served < 2200. *. now () do
      incr served;
      work !served;
      record !served
    done;
    Unix.sleepf 0.01
  done;
  ignore (Sys.opaque_identity base)
