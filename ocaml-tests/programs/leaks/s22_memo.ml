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

let memo = Hashtbl.create 16
let rec f n = match Hashtbl.find_opt memo n with Some v -> v | None -> let v = String.make (50 + n mod 50) 'm' in Hashtbl.replace memo n v; v
let () = Random.self_init (); serve 2000. (fun _ -> ignore (f (Random.int 9000)))
