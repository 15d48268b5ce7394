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

module E = Ephemeron.K1
let store : (int ref, int ref * bytes) Hashtbl.t = Hashtbl.create 10
let eph : (int ref, int ref * bytes) E.t list ref = ref []
let keys = Queue.create ()
let () = serve 500. (fun i ->
  let k = ref i in
  let e = E.create () in
  E.set_key e k; E.set_data e (k, Bytes.create 150);
  Queue.push k keys; if Queue.length keys > 3000 then ignore (Queue.pop keys);
  eph := e :: !eph)
