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

class bus = object
  val mutable subscribers : (int -> unit) list = []
  method subscribe f = subscribers <- f :: subscribers
  method count = List.length subscribers
end
let bus = new bus
let () = serve 500. (fun i -> let data = Array.make 30 i in bus#subscribe (fun k -> ignore data.(k)))
