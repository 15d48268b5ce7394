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

let old_ = ref [] and young_ = ref []
let () = serve 1200. (fun i -> young_ := Bytes.create 150 :: !young_; if i mod 9600 = 0 then (old_ := !young_; young_ := []))
