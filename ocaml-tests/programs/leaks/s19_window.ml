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

let q = Queue.create ()
let () = serve 1500. (fun i -> Queue.push (now (), Bytes.create (100 + i mod 300)) q;
  while not (Queue.is_empty q) && fst (Queue.peek q) < now () -. 12. do ignore (Queue.pop q) done)
