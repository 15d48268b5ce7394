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

let rec session acc i =
  if now () > d then List.length acc
  else begin
    scratch i; if i mod 8 = 0 then Unix.sleepf 0.004;
    session (Bytes.create 120 :: acc) (i + 1)
  end
let () = print_int (session [] 0)
