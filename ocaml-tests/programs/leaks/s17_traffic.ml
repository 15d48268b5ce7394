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

let open_ = Hashtbl.create 16
let () = serve 500. (fun i ->
  let n = 2000 + int_of_float (1500. *. sin (now () /. 9.)) in
  Hashtbl.replace open_ i (Bytes.create 400);
  let rec drop j = if Hashtbl.length open_ > n then (Hashtbl.remove open_ j; drop (j - 1)) in drop (i - 1))
