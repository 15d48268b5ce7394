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

module type KEY = sig type t val hash : t -> int val equal : t -> t -> bool end
module Registry (K : KEY) = struct
  module H = Hashtbl.Make (K)
  let entries : string list H.t = H.create 7
  let note k v = H.replace entries k (v :: (try H.find entries k with Not_found -> []))
end
module Users = Registry (struct type t = int let hash = Hashtbl.hash let equal = ( = ) end)
let () = serve 800. (fun i -> Users.note (i mod 50) (String.make 100 'u'))
