(* Allocates when it is loaded. *)
let table = Array.init 5000 (fun i -> Some (string_of_int i))
let () = if Array.length table <> 5000 then exit 4
