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

type 'a state = Pending of ('a -> unit) list | Done of 'a
type 'a promise = { mutable state : 'a state }
let shutdown : unit promise = { state = Pending [] }
let on p f = match p.state with Done v -> f v | Pending l -> p.state <- Pending (f :: l)
let request i = let body = Bytes.create 200 in on shutdown (fun () -> Bytes.set body 0 (Char.chr (i land 255)))
let () = serve 600. request
